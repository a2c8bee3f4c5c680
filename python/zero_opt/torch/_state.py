# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of an optimizer on one rank, as torch tensors.

The dict has the keys of torch's optimizers. `state` has an entry for each parameter, by
its number in the parameter groups. An entry has the parameter's name, and for each role,
such as "m", the pieces that this rank has: pairs of the first element and a tensor. The
scalars of the step are beside it. Parameters are the model's state, and are not in it;
master weights of bfloat16 parameters are.
"""

from __future__ import annotations

from typing import Any

import torch

from zero_opt._step import StateEntry, Step
from zero_opt.errors import ZeroOptError
from zero_opt.torch._aliases import Trained
from zero_opt.torch._parameters import DTYPES

_FORMAT = 1
_TORCH_DTYPES = {name: dtype for dtype, name in DTYPES.items()} | {"f64": torch.float64}


def _read(step: Step, entry: StateEntry) -> torch.Tensor:
    tensor = torch.empty(entry.end - entry.begin, dtype=_TORCH_DTYPES[entry.dtype])
    step.read_state(entry, tensor.data_ptr(), tensor.numel() * tensor.element_size())
    return tensor


def _write(step: Step, entry: StateEntry, tensor: torch.Tensor) -> None:
    tensor = tensor.detach().contiguous()
    step.write_state(entry, tensor.data_ptr(), tensor.numel() * tensor.element_size())


def _number_parameters(
    trained: list[Trained], groups: list[dict[str, Any]]
) -> dict[int, int]:
    """The numbers in the parameter groups, by those in the step."""
    parameters = [p for group in groups for p in group["params"]]
    places = {id(parameter): place for place, parameter in enumerate(parameters)}
    return {entry.number: places[id(entry.parameter)] for entry in trained}


def save(
    step: Step, trained: list[Trained], groups: list[dict[str, Any]]
) -> dict[str, Any]:
    """The state and the scalars, without the parameter groups."""
    places = _number_parameters(trained, groups)
    state: dict[int, dict[str, Any]] = {
        places[entry.number]: {"name": entry.name} for entry in trained
    }
    scalars: dict[str, torch.Tensor] = {}
    for entry in step.list_state():
        if entry.parameter is None:
            scalars[entry.role] = _read(step, entry)
        elif entry.role != "parameter":
            pieces = state[places[entry.parameter]].setdefault(entry.role, [])
            pieces.append((entry.begin, _read(step, entry)))
    return {"state": state, "scalars": scalars, "format": _FORMAT}


def _find(
    saved: dict[str, Any], place: int | None, entry: StateEntry
) -> torch.Tensor | None:
    """The saved tensor of |entry|, if there is one of its type and extent."""
    if place is None:
        found = saved["scalars"].get(entry.role)
    else:
        pieces = dict(saved["state"].get(place, {}).get(entry.role, ()))
        found = pieces.get(entry.begin)
    if (
        not isinstance(found, torch.Tensor)
        or found.dtype is not _TORCH_DTYPES[entry.dtype]
        or found.numel() != entry.end - entry.begin
    ):
        return None
    return found


def load(
    step: Step,
    trained: list[Trained],
    groups: list[dict[str, Any]],
    saved: dict[str, Any],
) -> None:
    """Writes what `save` returned. Nothing is written if something is missing."""
    if saved.get("format") != _FORMAT:
        raise ZeroOptError(
            "the state is not one that a zero_opt optimizer saved; start it anew, or "
            "load what state_dict() of this optimizer returned"
        )
    places = _number_parameters(trained, groups)
    names = {entry.number: entry.name for entry in trained}
    writes: list[tuple[StateEntry, torch.Tensor]] = []
    parameters: list[tuple[StateEntry, torch.Tensor]] = []
    for entry in step.list_state():
        if entry.role == "parameter":
            parameters.append((entry, _read(step, entry)))
            continue
        place = None if entry.parameter is None else places[entry.parameter]
        found = _find(saved, place, entry)
        if found is None:
            owner = "" if entry.parameter is None else f" of '{names[entry.parameter]}'"
            raise ZeroOptError(
                f"the saved state lacks elements {entry.begin} to {entry.end} of "
                f"'{entry.role}'{owner} in {entry.dtype}: it was saved by another rank, "
                "or with other parameters, another number of ranks or another stage"
            )
        writes.append((entry, found))
    # The model says what its parameters are, before or after this call. Where they are
    # not the rounded master weights, the next step takes the parameters.
    for entry, tensor in writes + parameters:
        _write(step, entry, tensor)
