# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of an optimizer on one rank, as torch tensors.

A parameter has the entries of torch's optimizers, such as "exp_avg", of which this rank has
pieces (_pieces.py). In place of "step" it has the products of the betas of its steps, such
as "beta1_t". Parameters are the model's state and not in it; "master", the master weights
of bfloat16 parameters, is. At stage 3 the model has no values of units, and gives no
state_dict(), so the state of each parameter has "parameter". It does on one rank, too,
since the next run may have several.

What torch's optimizers saved is loaded, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import torch

from zero_opt._step import StateEntry, Step
from zero_opt.errors import ZeroOptError
from zero_opt.torch import _pieces
from zero_opt.torch._aliases import Placed
from zero_opt.torch._copies import Copies
from zero_opt.torch._description import Recipe
from zero_opt.torch._parameters import DTYPES

_TORCH_DTYPES = {name: dtype for dtype, name in DTYPES.items()} | {"f64": torch.float64}
# Values of entries of the state.
Writes: TypeAlias = list[tuple[StateEntry, torch.Tensor]]
MASTER = "master"
PARAMETER = "parameter"


def _write(step: Step, entry: StateEntry, values: torch.Tensor) -> None:
    values = values.to("cpu", _TORCH_DTYPES[entry.dtype]).contiguous()
    step.write_state(entry, values.data_ptr(), values.numel() * values.element_size())


def _find_symbol(trained: list[Placed]) -> str:
    """The name that the compiler gives to the loss scale, which is no parameter's."""
    names = {parameter.name for parameter in trained}
    symbol = "loss_scale"
    while symbol in names:
        symbol += ".scale"
    return symbol


class State(Mapping[torch.Tensor, dict[str, Any]]):
    """The state by parameter, as torch.optim.Optimizer.state. It is read from the step when
    it is asked for."""

    def __init__(
        self,
        step: Step,
        trained: list[Placed],
        recipe: Recipe,
        has_parameters: bool,
    ) -> None:
        self._step = step
        self._trained = trained
        self._recipe = recipe
        self._has_parameters = has_parameters
        self.copies = Copies()
        # By number of the parameter and role.
        self._entries: dict[int, dict[str, list[StateEntry]]] = {}
        self._counters: dict[int, dict[str, StateEntry]] = {}
        roles = [*recipe.state]
        for parameter in trained:
            has_master = parameter.view.dtype is not torch.float32
            self._entries[parameter.number] = {
                role: [] for role in [*roles, *([MASTER] * has_master), PARAMETER]
            }
        symbols: dict[str, dict[str, StateEntry]] = {}
        for entry in step.list_state():
            if entry.parameter is not None:
                self._entries[entry.parameter][entry.role].append(entry)
            else:
                symbol, _, name = entry.role.rpartition(".")
                symbols.setdefault(symbol, {})[name] = entry
        # It has no parameter; the first one keeps it.
        self._loss_scale = symbols.pop(_find_symbol(trained), {})
        if symbols:
            # Each parameter has a group of the step, in the order of parameters.
            for parameter, counters in zip(trained, symbols.values(), strict=True):
                self._counters[parameter.number] = counters
        # Of all parameters, before the first step.
        self._initial = {
            name: self._read_number(entry).item()
            for name, entry in next(iter(symbols.values()), {}).items()
        }

    def __iter__(self) -> Iterator[torch.Tensor]:
        return (trained.parameter for trained in self._trained)

    def __len__(self) -> int:
        return len(self._trained)

    def __getitem__(self, parameter: torch.Tensor) -> dict[str, Any]:
        for trained in self._trained:
            if trained.parameter is parameter:
                return self.copies.give(trained.name, self.read(trained))
        raise KeyError(parameter)

    def list_counters(self, trained: Placed) -> list[str]:
        return [*self._counters.get(trained.number, {})]

    def read(self, trained: Placed) -> dict[str, Any]:
        elements = trained.view.numel()
        found: dict[str, Any] = {}
        for role, entries in self._entries[trained.number].items():
            if role == PARAMETER and not self._has_parameters:
                continue
            name = self._recipe.state.get(role, role)
            if not elements:
                # torch.distributed.checkpoint would not find a tensor without pieces.
                found[name] = torch.empty(0)
                continue
            intervals = [(entry.begin, entry.end) for entry in entries]
            dtype = _TORCH_DTYPES[entries[0].dtype] if entries else torch.float32
            tensor = _pieces.make(intervals, elements, dtype)
            for entry, (begin,) in zip(entries, tensor.local_offsets, strict=True):
                self._read(entry, tensor[begin : begin + entry.end - entry.begin])
            found[name] = _pieces.protect(tensor)
        for name, entry in self._counters.get(trained.number, {}).items():
            found[name] = self._read_number(entry)
        if trained is self._trained[0]:
            for name, entry in self._loss_scale.items():
                found[f"loss_scale_{name}"] = self._read_number(entry)
        return found

    def _read_number(self, entry: StateEntry) -> torch.Tensor:
        number = torch.empty((), dtype=torch.float64)
        self._read(entry, number)
        return number

    def _read(self, entry: StateEntry, tensor: torch.Tensor) -> None:
        size = tensor.numel() * tensor.element_size()
        self._step.read_state(entry, tensor.data_ptr(), size)

    def load(self, saved: Mapping[str, tuple[dict[str, Any], dict[str, Any]]]) -> None:
        """|saved| has the state and the parameter group of each parameter, by name. Nothing
        is written if something is missing."""
        writes: Writes = []
        parameters: Writes = []
        writes += self._collect_loss_scale(saved[self._trained[0].name][0])
        for trained in self._trained:
            state, group = saved[trained.name]
            writes += self._collect(trained, state)
            writes += self._collect_counters(trained, state, group)
            for entry in self._entries[trained.number][PARAMETER]:
                if self._has_parameters and PARAMETER in state:
                    continue
                values = torch.empty(entry.end - entry.begin, dtype=trained.view.dtype)
                self._read(entry, values)
                parameters.append((entry, values))
        # The model says what its parameters are, before or after this call. Where they are
        # not the rounded master weights, the next step takes the parameters. Master
        # weights that were not saved are the parameters.
        self.write(writes + parameters)

    def collect_whole(
        self, trained: Placed, saved: dict[str, Any], group: dict[str, Any]
    ) -> Writes:
        """What makes |saved| all state of |trained|, and the parameter: it has all elements
        of each, in one dimension."""
        writes = [
            *self._collect(trained, saved),
            *self._collect_counters(trained, saved, group),
        ]
        if trained.unit is None:
            for entry in self._entries[trained.number][PARAMETER]:
                writes.append((entry, saved[PARAMETER][entry.begin : entry.end]))
        return writes

    def write(self, writes: Writes) -> None:
        self.copies.forget()
        for entry, values in writes:
            _write(self._step, entry, values)

    def _collect(
        self, trained: Placed, saved: dict[str, Any]
    ) -> Iterator[tuple[StateEntry, torch.Tensor]]:
        elements = trained.view.numel()
        roles = {*self._entries[trained.number]} - {PARAMETER}
        if trained.unit is not None:
            # Another stage saved no parameters of units: they are in the model.
            if PARAMETER in saved:
                roles |= {PARAMETER}
            elif not self._has_rounded(trained, saved.get(MASTER)):
                roles -= {MASTER}
        elif self._has_parameters and PARAMETER in saved:
            roles |= {PARAMETER}
        for role, entries in self._entries[trained.number].items():
            if role not in roles:
                continue
            name = self._recipe.state.get(role, role)
            found = _pieces.unprotect(saved.get(name))
            if found is None and role == MASTER:
                continue
            # torch has no entry for a parameter that has had no gradient, and SGD None.
            if not saved or (found is None and name in saved):
                found = torch.zeros(elements)
            if isinstance(found, torch.Tensor):
                _check_tensor(trained.name, name, found, elements)
            for entry in entries:
                values = None
                if isinstance(found, torch.Tensor):
                    values = _pieces.find([found], entry.begin, entry.end)
                if values is None:
                    raise ZeroOptError(
                        f"the saved state lacks elements {entry.begin} to {entry.end} of "
                        f"'{name}' of '{trained.name}': it was saved by another rank, on "
                        "another number of ranks, at another stage or by another "
                        "optimizer; save with torch.distributed.checkpoint, or save "
                        "consolidate_state_dict()"
                    )
                yield entry, values

    def restore_master(self, trained: Placed, saved: dict[str, Any]) -> None:
        """Writes the master weights of |saved|, if the parameter of a unit is these,
        rounded."""
        entries = self._entries[trained.number].get(MASTER, [])
        found = _pieces.unprotect(saved.get(MASTER))
        if not self._has_rounded(trained, saved.get(MASTER)):
            return
        for entry in entries:
            values = _pieces.find([found], entry.begin, entry.end)
            if values is not None:
                _write(self._step, entry, values)

    def _has_rounded(self, trained: Placed, master: Any) -> bool:
        """Whether the parameter of a unit is |master|, rounded. No step compares them."""
        found = _pieces.unprotect(master)
        for entry in self._entries[trained.number][PARAMETER]:
            values = torch.empty(entry.end - entry.begin, dtype=trained.view.dtype)
            self._read(entry, values)
            if not isinstance(found, torch.Tensor):
                return False
            saved = _pieces.find([found], entry.begin, entry.end)
            if saved is None or not torch.equal(saved.to(values.dtype), values):
                return False
        return True

    def _collect_loss_scale(
        self, saved: dict[str, Any]
    ) -> Iterator[tuple[StateEntry, torch.Tensor]]:
        """It stays what it is if none was saved."""
        for name, entry in self._loss_scale.items():
            key = f"loss_scale_{name}"
            if key in saved:
                value = _read_number(saved[key])
                if not 0 <= value < float("inf"):
                    raise ZeroOptError(
                        f"the saved state has '{key}' {value}, expected a finite number "
                        "from 0 on; load a state that is not damaged"
                    )
                yield entry, torch.tensor([value], dtype=torch.float64)

    def _collect_counters(
        self, trained: Placed, saved: dict[str, Any], group: dict[str, Any]
    ) -> Iterator[tuple[StateEntry, torch.Tensor]]:
        for name, entry in self._counters.get(trained.number, {}).items():
            read_beta = self._recipe.get_beta(name)
            if name in saved:
                value = _read_number(saved[name])
            elif "step" in saved and read_beta:
                value = read_beta(group) ** _read_number(saved["step"])
            elif not saved:
                value = self._initial[name]
            else:
                raise ZeroOptError(
                    f"the saved state of '{trained.name}' has no '{name}'"
                    + (" and no 'step'" if read_beta else "")
                    + ": another optimizer saved it; load it into one of that kind"
                )
            if not (0 <= value <= 1 if read_beta else math.isfinite(value)):
                expected = "product of betas" if read_beta else "finite number"
                raise ZeroOptError(
                    f"the saved state of '{trained.name}' has '{name}' {value}, expected a "
                    f"{expected}; load a state that is not damaged"
                )
            yield entry, torch.tensor([value], dtype=torch.float64)


def _read_number(saved: Any) -> float:
    """nan for what is none."""
    if isinstance(saved, torch.Tensor):
        saved = saved.item() if saved.numel() == 1 else None
    return float(saved) if isinstance(saved, int | float) else float("nan")


def _check_tensor(owner: str, name: str, saved: torch.Tensor, elements: int) -> None:
    if _pieces.get_elements(saved) != elements:
        raise ZeroOptError(
            f"the saved state has {_pieces.get_elements(saved)} elements of '{name}' of "
            f"'{owner}', expected {elements}; load the state of the same model"
        )
    if not saved.is_floating_point() or saved.layout != torch.strided:
        raise ZeroOptError(
            f"the saved state has '{name}' of '{owner}' in {saved.dtype}, expected dense "
            "float32; load the state of the same optimizer"
        )
