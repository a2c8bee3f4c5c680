# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Universal checkpoints of DeepSpeed, as ds_to_universal writes them.

A folder has a file for each parameter and each entry of its state:

    zero/NAME/fp32.pt, exp_avg.pt, exp_avg_sq.pt, step.pt

A file has the tensor, or a dict with it as "param". Files of stage 3 have flat tensors, and
no step; the model's files have the number of steps.
"""

from __future__ import annotations

import functools
import os
import pathlib
import pickle
import shutil
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import nn

from zero_opt.errors import ZeroOptError
from zero_opt.torch._aliases import Placed
from zero_opt.torch._checkpoint import Groups, assemble, count_steps, pack_groups
from zero_opt.torch._description import Recipe
from zero_opt.torch._ranks import Ranks
from zero_opt.torch._state import MASTER, PARAMETER, State, Writes

Folder: TypeAlias = "str | os.PathLike[str]"

# The state of Adam, which is the only one that the format has.
_ADAM = ["exp_avg", "exp_avg_sq"]

# DeepSpeed reads the version of its own that wrote a checkpoint. This one read and wrote
# the files that this module was written for.
_DEEPSPEED = "0.19.8"

# What messages call a file that is not what ds_to_universal writes.
_REMEDY = "give the folder that ds_to_universal has written, or convert again"


def _read(path: pathlib.Path) -> Any:
    if path.exists() and not zipfile.is_zipfile(path):
        raise ZeroOptError(f"'{path}' is damaged, or no file of torch.save; {_REMEDY}")
    try:
        return torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except OSError as error:
        raise ZeroOptError(f"'{path}' cannot be read: {error.strerror or error}") from error
    except pickle.UnpicklingError as error:
        raise ZeroOptError(
            f"'{path}' has more than tensors and numbers, which could run code; {_REMEDY}"
        ) from error
    except (RuntimeError, EOFError) as error:
        raise ZeroOptError(f"'{path}' cannot be read: {error}; {_REMEDY}") from error


def _get_place(name: str) -> pathlib.PurePath:
    """The folder of a parameter, below "zero"."""
    if "/" in name or "\0" in name or name in ("", ".", ".."):
        raise ZeroOptError(
            f"parameter '{name}' has no name of a folder, and a universal checkpoint has a "
            "folder for each parameter; give it another name"
        )
    return pathlib.PurePath("zero") / name


def _name(trained: list[Placed], model: nn.Module | None) -> dict[int, str]:
    """The names of parameters by number. DeepSpeed has those of the model."""
    names = model.named_parameters() if model is not None else []
    own = {id(parameter): name for name, parameter in names}
    return {entry.number: own.get(id(entry.parameter), entry.name) for entry in trained}


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
        name = latest.read_text().strip()
        path = path / name
        if "/" in name or not (path / "zero").is_dir():
            raise ZeroOptError(
                f"'{latest}' names '{name}', and there is no folder of this name with a "
                f"universal checkpoint; {_REMEDY}"
            )
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
        try:
            states = _read(path)
        except ZeroOptError:
            continue  # such as one with objects of the training script
        if not isinstance(states, Mapping):
            continue
        steps, skipped = states.get("global_steps"), states.get("skipped_steps", 0)
        if type(steps) is int and type(skipped) is int:
            return steps - skipped
    return -1


def check_recipe(recipe: Recipe) -> None:
    names = list(recipe.state.values())
    if recipe.ir:
        raise ZeroOptError(
            "a universal checkpoint has the state of Adam, and the optimizer is IR; it is "
            "for AdamW and Adam"
        )
    if names != _ADAM:
        raise ZeroOptError(
            f"a universal checkpoint has the state of Adam, and {recipe.name} has "
            f"{', '.join(names) or 'none'}; it is for AdamW and Adam"
        )


class _Reader:
    """Reads the state of each parameter, as State.collect_whole takes it."""

    def __init__(self, folder: Folder, recipe: Recipe, names: dict[int, str]) -> None:
        self._names = names
        self._folder = _find_folder(folder)
        self.steps = _read_number_of_steps(self._folder)
        check_recipe(recipe)

    def read(self, entry: Placed) -> dict[str, Any]:
        name = self._names[entry.number]
        folder = self._folder / _get_place(name)
        if not folder.is_dir():
            raise ZeroOptError(
                f"'{self._folder}' has no parameter '{name}'; give the optimizer the "
                "model that was trained, so that names are the same"
            )
        shape = entry.view.shape
        found: dict[str, Any] = {
            kind: _read_tensor(folder / f"{kind}.pt", shape) for kind in _ADAM
        }
        weights = _read_tensor(folder / "fp32.pt", shape)
        step = folder / "step.pt"
        count = _read(step) if step.exists() else self.steps
        if isinstance(count, torch.Tensor) and count.numel() == 1:
            count = count.item()
        if not isinstance(count, int | float) or not 0 <= count < 2**53:
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
    model: nn.Module | None,
) -> int:
    """Nothing is written if something is missing on a rank. Returns the number of steps."""
    owners = {id(p): group for group in groups for p in group["params"]}
    message = None

    def collect(entry: Placed) -> Writes:
        return state.collect_whole(entry, reader.read(entry), owners[id(entry.parameter)])

    try:
        reader = _Reader(folder, recipe, _name(trained, model))
        for entry in trained:
            collect(entry)
    except ZeroOptError as error:
        message = str(error)
    except Exception as error:  # of a damaged file; the other ranks wait for this one
        message = f"'{folder}' cannot be read: {type(error).__name__}: {error}"
    for rank, found in enumerate(ranks.gather(message)):
        if found:
            where = f"rank {rank}: " if ranks.size > 1 else ""
            raise ZeroOptError(where + found)
    for entry in trained:
        state.write(collect(entry))
    return reader.steps


def _collect(
    entry: Placed, state: State, group: dict[str, Any], recipe: Recipe, ranks: Ranks
) -> dict[str, Any] | None:
    """The files of a parameter by name, on rank 0; None on the others."""
    parts = ranks.gather_to_first(state.read(entry))
    if parts is None:
        return None
    whole = {name: assemble([p[name] for p in parts], entry) for name in _ADAM}
    source = next((name for name in (MASTER, PARAMETER) if name in parts[0]), None)
    if source is None:
        whole["fp32"] = entry.parameter.detach().cpu().float()
    else:
        whole["fp32"] = assemble([p[source] for p in parts], entry).float()
    files: dict[str, Any] = {
        f"{name}.pt": {"param": tensor, "cat_dim": 0} for name, tensor in whole.items()
    }
    counters = state.list_counters(entry)
    count = count_steps({name: parts[0][name].item() for name in counters}, group, recipe)
    return files | {"step.pt": torch.tensor(float(count))}


def save(
    folder: Folder,
    number: int,
    model: nn.Module,
    values: Mapping[str, torch.Tensor],
    state: State,
    trained: list[Placed],
    groups: Groups,
    recipe: Recipe,
    ranks: Ranks,
) -> None:
    """Rank 0 writes, one parameter at a time. |values| is the state_dict() of |model|, on
    rank 0."""
    if type(number) is not int or number < 0:
        raise ZeroOptError(
            f"the number of a checkpoint is that of steps, 0 or more, got {number!r}"
        )
    places = {key: _get_place(name) for key, name in _name(trained, model).items()}
    owners = {id(p): group for group in groups for p in group["params"]}
    path = pathlib.Path(folder)
    final = path / f"global_step{number}"
    partial = path / f"global_step{number}.partial"
    message: str | None = None

    def write(name: str, value: Any) -> None:
        (partial / name).parent.mkdir(parents=True, exist_ok=True)
        torch.save(value, partial / name)

    def attempt(body: Callable[[], None]) -> None:
        # After an error the other ranks still wait for this one.
        nonlocal message
        if ranks.rank or message:
            return
        try:
            body()
        except Exception as error:  # of the file, or of what is no value of a file
            message = f"'{final}' cannot be written: {error}"

    def begin() -> None:
        if final.exists():
            raise FileExistsError(f"{final} exists; give another number, or remove it")
        if partial.exists():
            shutil.rmtree(partial)

    def end() -> None:
        kept = {"param_groups": pack_groups(groups), "ds_version": _DEEPSPEED}
        write("zero/optimizer_state.pt", kept)
        write(
            "mp_rank_00_model_states.pt",
            {
                "module": dict(values),
                "global_steps": number,
                "skipped_steps": 0,
                "dp_world_size": ranks.size,
                "mp_world_size": 1,
                "lr_scheduler": None,
                "ds_version": _DEEPSPEED,
                "universal_checkpoint_info": {},
            },
        )
        partial.rename(final)
        latest = path / "latest_universal.partial"
        latest.write_text(final.name)
        latest.replace(path / "latest_universal")

    attempt(begin)
    for entry in trained:
        files = _collect(entry, state, owners[id(entry.parameter)], recipe, ranks)
        for name, value in (files or {}).items():
            attempt(functools.partial(write, f"{places[entry.number]}/{name}", value))
    attempt(end)
    if message := ranks.broadcast(message):
        raise ZeroOptError(message)
