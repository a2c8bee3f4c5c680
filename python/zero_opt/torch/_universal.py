# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Universal checkpoints of DeepSpeed, as ds_to_universal writes them.

A folder has a file for each parameter and each entry of its state:

    zero/NAME/fp32.pt, exp_avg.pt, exp_avg_sq.pt, step.pt

A file has the tensor, or a dict with it as "param". Files of stage 3 have flat tensors, and
no step; the model's files have the number of steps.
"""

from __future__ import annotations

import os
import pathlib
import pickle
from collections.abc import Mapping
from typing import Any, TypeAlias

import torch

from zero_opt.errors import ZeroOptError
from zero_opt.torch._aliases import Placed
from zero_opt.torch._checkpoint import Groups
from zero_opt.torch._description import Recipe
from zero_opt.torch._ranks import Ranks
from zero_opt.torch._state import MASTER, PARAMETER, State

Folder: TypeAlias = "str | os.PathLike[str]"

# What messages call a file that is not what ds_to_universal writes.
_REMEDY = "give the folder that ds_to_universal has written, or convert again"


def _read(path: pathlib.Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except OSError as error:
        raise ZeroOptError(f"'{path}' cannot be read: {error.strerror or error}") from error
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "damaged"
        raise ZeroOptError(f"'{path}' cannot be read: {reason}; {_REMEDY}") from error


def _read_tensor(path: pathlib.Path, shape: torch.Size) -> torch.Tensor:
    """The flat tensor of a file."""
    found = _read(path)
    if isinstance(found, Mapping):
        found = found.get("param")
    if not isinstance(found, torch.Tensor):
        raise ZeroOptError(f"'{path}' has no tensor; {_REMEDY}")
    if found.shape not in (shape, shape[:0] + (shape.numel(),)):
        raise ZeroOptError(
            f"'{path}' has shape {tuple(found.shape)}, expected {tuple(shape)}; load the "
            "checkpoint of the same model"
        )
    if not found.is_floating_point() or found.layout != torch.strided:
        raise ZeroOptError(f"'{path}' has {found.dtype}, expected dense float32; {_REMEDY}")
    return found.reshape(-1)


def _find_folder(folder: Folder) -> pathlib.Path:
    """|folder|, or the one that `latest_universal` in it names."""
    path = pathlib.Path(folder)
    latest = path / "latest_universal"
    if not (path / "zero").is_dir() and latest.is_file():
        path = path / latest.read_text().strip()
    if not (path / "zero").is_dir():
        raise ZeroOptError(
            f"folder '{folder}' has no universal checkpoint: there is no folder 'zero' and "
            "no file 'latest_universal' in it; convert a checkpoint of DeepSpeed with "
            "ds_to_universal.py first"
        )
    return path


def _read_number_of_steps(folder: pathlib.Path) -> int:
    """How many steps were made, by the files of the model; -1 if they do not say so."""
    for path in sorted(folder.glob("*mp_rank_*_model_states.pt")):
        states = _read(path)
        if isinstance(states, Mapping) and isinstance(states.get("global_steps"), int):
            return int(states["global_steps"]) - int(states.get("skipped_steps", 0))
    return -1


class _Reader:
    """Reads the state of each parameter, as State.load_whole takes it."""

    def __init__(self, folder: Folder, recipe: Recipe) -> None:
        self._folder = _find_folder(folder)
        self.steps = _read_number_of_steps(self._folder)
        self._names = list(recipe.state.values())
        if self._names != ["exp_avg", "exp_avg_sq"]:
            raise ZeroOptError(
                f"a universal checkpoint has the state of Adam, and {recipe.name} has "
                f"{', '.join(self._names) or 'none'}; load it into AdamW or Adam"
            )

    def read(self, entry: Placed) -> dict[str, Any]:
        folder = self._folder / "zero" / entry.name
        if not folder.is_dir():
            raise ZeroOptError(
                f"'{self._folder}' has no parameter '{entry.name}'; give the optimizer the "
                "model that was trained, so that names are the same"
            )
        shape = entry.view.shape
        found: dict[str, Any] = {
            name: _read_tensor(folder / f"{name}.pt", shape) for name in self._names
        }
        weights = _read_tensor(folder / "fp32.pt", shape)
        step = folder / "step.pt"
        count = _read(step) if step.exists() else self.steps
        if isinstance(count, torch.Tensor) and count.numel() == 1:
            count = count.item()
        if not isinstance(count, int | float) or not 0 <= count < float("inf"):
            raise ZeroOptError(
                f"'{folder}' has no number of steps: step.pt is absent or damaged, and the "
                f"model's files have none; {_REMEDY}"
            )
        return found | {"step": count, MASTER: weights, PARAMETER: weights}


def load(
    folder: Folder,
    state: State,
    trained: list[Placed],
    groups: Groups,
    recipe: Recipe,
    ranks: Ranks,
) -> int:
    """Nothing is written if something is missing on a rank. Returns the number of steps."""
    owners = {id(p): group for group in groups for p in group["params"]}
    message = None
    try:
        reader = _Reader(folder, recipe)
        for entry in trained:
            reader.read(entry)
    except ZeroOptError as error:
        message = str(error)
    for rank, found in enumerate(ranks.gather(message)):
        if found:
            where = f"rank {rank}: " if ranks.size > 1 else ""
            raise ZeroOptError(where + found)
    for entry in trained:
        state.load_whole(entry, reader.read(entry), owners[id(entry.parameter)])
    return reader.steps
