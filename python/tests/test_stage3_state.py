# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State and checkpoints at ZeRO stage 3."""

from __future__ import annotations

import copy
import io
import pathlib
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from ranks import Workers
from test_state import is_equal
from training import get_rank
from units import Deep, Training, make_deep, make_optimizer, run_steps

import zero_opt.errors as zo_errors
import zero_opt.torch as zo
from zero_opt.torch._checkpoint import merge

DTYPES = [torch.float32, torch.bfloat16]


def read(model: Deep, optimizer: zo.AdamW, zero: int) -> dict[str, torch.Tensor]:
    """The whole model, on rank 0."""
    if zero == 3:
        return optimizer.consolidate_model()
    return {} if get_rank() else {k: v.clone() for k, v in model.state_dict().items()}


def start(dtype: torch.dtype, zero: int, seed: int = 0) -> tuple[Deep, zo.AdamW]:
    """Frozen parameters are those of seed 0."""
    model, first = make_deep(Training(dtype), seed), make_deep(Training(dtype))
    for layer, other in zip(model.layers, first.layers, strict=True):
        with torch.no_grad():
            layer.frozen.copy_(other.frozen)
            layer.base.weight.copy_(other.base.weight)
    return model, make_optimizer(model, zero, max_norm=0.5)


def train_more(dtype: torch.dtype, model: Deep, optimizer: zo.AdamW, steps: range) -> Any:
    losses, norms = run_steps(model, optimizer, Training(dtype), steps)
    # The order of the squares in f64 depends on the stage.
    return losses, torch.tensor(norms, dtype=torch.float32)


def save_all(dtype: torch.dtype, zero: int, folder: str) -> Any:
    """Saves in all ways, and trains on. Returns the losses and the model at the end."""
    model, optimizer = start(dtype, zero)
    train_more(dtype, model, optimizer, range(3))
    optimizer.save_checkpoint(f"{folder}/files", 3)
    content = io.BytesIO()
    torch.save(optimizer.state_dict(), content)
    whole = read(model, optimizer, zero)
    torch.save((content.getvalue(), whole), f"{folder}/{get_rank()}.pt")
    dcp.save({"optim": optimizer}, checkpoint_id=f"{folder}/dcp")
    found = train_more(dtype, model, optimizer, range(3, 5))
    result = found, read(model, optimizer, zero)
    optimizer.close()
    return result


def continue_from(dtype: torch.dtype, zero: int, folder: str, way: str) -> Any:
    """Parameters have other values than those that were saved."""
    model, optimizer = start(dtype, zero, seed=50)
    content, _ = torch.load(f"{folder}/{get_rank()}.pt", weights_only=False)
    _, whole = torch.load(f"{folder}/0.pt", weights_only=False)
    train_more(dtype, model, optimizer, range(1))  # there is other state to be replaced
    if way == "files":
        assert optimizer.load_checkpoint(f"{folder}/files") == 3
    elif way in ("model", "state first"):
        if way == "model":
            optimizer.load_model({} if get_rank() else whole)
        files = [torch.load(f"{folder}/{r}.pt", weights_only=False) for r in range(2)]
        states = [torch.load(io.BytesIO(f[0]), weights_only=False) for f in files]
        optimizer.load_state_dict(merge(states))
        if way == "state first":
            optimizer.load_model({} if get_rank() else whole)
    elif way == "dcp":
        dcp.load({"optim": optimizer}, checkpoint_id=f"{folder}/dcp")
    else:
        optimizer.load_state_dict(torch.load(io.BytesIO(content), weights_only=False))
    found = train_more(dtype, model, optimizer, range(3, 5))
    result = found, read(model, optimizer, zero)
    optimizer.close()
    return result


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_continues(workers: Workers, tmp_path: pathlib.Path, dtype: torch.dtype) -> None:
    expected = workers.run(save_all, dtype, 3, str(tmp_path))
    for way in ("dict", "files", "dcp"):
        found = workers.run(continue_from, dtype, 3, str(tmp_path), way)
        assert is_equal(found, expected), way


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("saved, loaded", [(2, 3), (3, 2), (3, 3)])
def test_a_model_and_the_state_of_all_ranks(
    workers: Workers, tmp_path: pathlib.Path, dtype: torch.dtype, saved: int, loaded: int
) -> None:
    """The way of Trainer and Accelerate."""
    folder = str(tmp_path)
    expected = workers.run(save_all, dtype, saved, folder)
    ways = ["model", *["state first"] * (saved == loaded)]
    for way in ways:
        found = workers.run(continue_from, dtype, loaded, folder, way)
        assert is_equal(found, expected), way


def load_other_values(zero: int, trains: bool) -> list[bool]:
    """Whether load_model gives the values of a dict, and state stays."""
    model, optimizer = start(torch.bfloat16, zero)
    train_more(torch.bfloat16, model, optimizer, range(trains))
    state = copy.deepcopy(optimizer.consolidate_state_dict())
    values = {
        name: tensor * 2 if tensor.is_floating_point() else tensor
        for name, tensor in read(model, optimizer, zero).items()
    }
    optimizer.load_model(values)
    found = read(model, optimizer, zero)
    is_kept = is_equal(optimizer.consolidate_state_dict(), state)
    messages = []
    first = next(name for name, _ in model.named_parameters())
    for wrong in ({}, {**values, first: torch.ones(1)}):
        try:
            optimizer.load_model(wrong)
        except zo_errors.ZeroOptError as error:
            messages.append(str(error))
    is_lost = not is_equal(read(model, optimizer, zero), found)
    optimizer.close()
    return [is_equal(found, values), is_kept, not is_lost, len(messages) == 2]


@pytest.mark.parametrize("trains", [0, 2])
@pytest.mark.parametrize("zero", [1, 3])
def test_load_model(workers: Workers, zero: int, trains: int) -> None:
    assert workers.run(load_other_values, zero, trains) == [[True] * 4] * 2


def load_files(dtype: torch.dtype, zero: int, folder: str) -> dict[str, torch.Tensor]:
    model, optimizer = start(dtype, zero, seed=50)
    optimizer.load_checkpoint(f"{folder}/files")
    result = read(model, optimizer, zero)
    optimizer.close()
    return result


def save_files(dtype: torch.dtype, zero: int, folder: str) -> dict[str, torch.Tensor]:
    model, optimizer = start(dtype, zero)
    train_more(dtype, model, optimizer, range(3))
    optimizer.save_checkpoint(f"{folder}/files", 3)
    result = read(model, optimizer, zero)
    optimizer.close()
    return result


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_other_stages_and_ranks(
    workers: Workers, three_workers: Workers, tmp_path: pathlib.Path, dtype: torch.dtype
) -> None:
    folder = str(tmp_path)
    for zero in (3, 2):
        saved = workers.run(save_files, dtype, zero, folder)[0]
        for loaded in (
            load_files(dtype, 1, folder),
            load_files(dtype, 3, folder),
            workers.run(load_files, dtype, 5 - zero, folder)[0],
            three_workers.run(load_files, dtype, 3, folder)[0],
        ):
            assert is_equal(loaded, saved)


def make_passes(model: Deep, passes: range) -> None:
    for number in passes:
        generator = torch.Generator().manual_seed(100 * number + get_rank())
        model.compute_loss(generator).backward()


def save_within(dtype: torch.dtype, folder: str) -> dict[str, torch.Tensor]:
    model, optimizer = start(dtype, zero=3)
    train_more(dtype, model, optimizer, range(1))
    make_passes(model, range(2))
    optimizer.save_checkpoint(folder)
    make_passes(model, range(2, 4))
    optimizer.step()
    result = read(model, optimizer, 3)
    optimizer.close()
    return result


def load_within(dtype: torch.dtype, zero: int, folder: str) -> dict[str, torch.Tensor]:
    model, optimizer = start(dtype, zero, seed=50)
    optimizer.load_checkpoint(folder)
    make_passes(model, range(optimizer.backward_passes, 4))
    optimizer.step()
    result = read(model, optimizer, zero)
    optimizer.close()
    return result


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_within_a_step(
    workers: Workers, tmp_path: pathlib.Path, dtype: torch.dtype
) -> None:
    folder = str(tmp_path / "files")
    saved = workers.run(save_within, dtype, folder)[0]
    for zero in (3, 2):  # both sum over ranks in each backward pass
        assert is_equal(workers.run(load_within, dtype, zero, folder)[0], saved)


def save_or_load(folder: str, saves: bool) -> dict[str, torch.Tensor]:
    """A rank that is alone keeps units whole, and saves their parameters all the same."""
    dtype = torch.bfloat16
    model, optimizer = start(dtype, 3, seed=0 if saves else 50)
    if saves:
        train_more(dtype, model, optimizer, range(2))
        dcp.save({"optim": optimizer}, checkpoint_id=folder)
    else:
        dcp.load({"optim": optimizer}, checkpoint_id=folder)
    whole = {name: tensor.clone() for name, tensor in read(model, optimizer, 3).items()}
    optimizer.close()
    return whole


def test_one_rank_and_several(workers: Workers, tmp_path: pathlib.Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    of_one = save_or_load(one, saves=True)
    of_two = workers.run(save_or_load, two, True)[0]
    assert not is_equal(of_one, start(torch.bfloat16, 3, seed=50)[0].state_dict())
    for folder, expected in ((one, of_one), (two, of_two)):
        assert is_equal(save_or_load(folder, saves=False), expected)
        assert is_equal(workers.run(save_or_load, folder, False)[0], expected)
