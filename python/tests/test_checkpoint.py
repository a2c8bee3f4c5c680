# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.distributed.checkpoint saves on some ranks and loads on others."""

from __future__ import annotations

import copy
import pathlib
from typing import Any
from unittest import mock

import pytest
import torch
import torch.distributed.checkpoint as dcp
from checkpoints import (
    Layout,
    join,
    load_and_save,
    load_and_train,
    make,
    train,
    train_and_save,
)
from ranks import Workers
from test_state import is_equal, through_a_file
from torch import nn
from torch.distributed.checkpoint import state_dict as dsd
from torch.distributed.checkpoint.api import CheckpointException

import zero_opt.torch as zo
from zero_opt import ZeroOptError
from zero_opt.torch import _checkpoint, _pieces

BF16 = torch.bfloat16
# All layouts of a line load from all of the line.
LAYOUTS = {
    "app": [Layout(1, 0), Layout(2, 2, "256"), Layout(3, 1, "1024")],
    "objects": [
        Layout(1, 1, dtype=BF16),
        Layout(2, 0, dtype=BF16),
        Layout(3, 2, "256", BF16),
    ],
}


@pytest.fixture(scope="module")
def pools(workers: Workers, three_workers: Workers) -> dict[int, Any]:
    class Alone:
        def run(self, function: Any, *arguments: Any) -> list[Any]:
            return [function(*arguments)]

    return {1: Alone(), 2: workers, 3: three_workers}


@pytest.mark.parametrize("way", LAYOUTS)
def test_other_ranks(pools: dict[int, Any], tmp_path: pathlib.Path, way: str) -> None:
    layouts = LAYOUTS[way]
    for saver in layouts:
        folder = str(tmp_path / str(saver))
        saved = join(pools[saver.ranks].run(train_and_save, saver, way, folder))
        for loader in layouts:
            ranks = pools[loader.ranks].run(load_and_save, loader, way, folder, None)
            assert is_equal(join(ranks), saved), f"saved: {saver}, loaded: {loader}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_continues_with_the_same_bits(
    pools: dict[int, Any], tmp_path: pathlib.Path, dtype: torch.dtype
) -> None:
    """Also if other ranks have loaded and saved in between."""
    two, three = Layout(2, 2, "1048576", dtype), Layout(3, 1, "256", dtype)
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    pools[2].run(train_and_save, two, "app", first)
    pools[3].run(load_and_save, three, "app", first, second)
    resumed = pools[2].run(load_and_train, two, "app", second)
    assert is_equal(resumed, pools[2].run(load_and_train, two, "app", None))


def test_get_state_dict_changes_nothing() -> None:
    """torch would make a step to create state."""
    states = []
    for is_asked in (False, True):
        model, optimizer = make(Layout(1, 1))
        for step in range(2):
            if is_asked:
                dsd.get_state_dict(model, optimizer)
            train(model, optimizer, range(step, step + 1))
        states.append(optimizer.state_dict())
        assert optimizer.state[model.last.weight].keys() == states[0]["state"][10].keys()
        with pytest.raises(KeyError):
            optimizer.state[model.frozen]
        optimizer.close()
    assert is_equal(*states)


def test_flattened_and_offloaded_state(tmp_path: pathlib.Path) -> None:
    options = dsd.StateDictOptions(flatten_optimizer_state_dict=True, cpu_offload=True)
    model, optimizer = make(Layout(1, 1))
    train(model, optimizer, range(3))
    saved = dsd.get_optimizer_state_dict(model, optimizer, options=options)
    dcp.save(saved, checkpoint_id=str(tmp_path))
    other, loading = make(Layout(1, 1), seed=5)
    state = dsd.get_optimizer_state_dict(other, loading, options=options)
    dcp.load(state, checkpoint_id=str(tmp_path))
    dsd.set_optimizer_state_dict(other, loading, state, options=options)
    assert is_equal(loading.state_dict(), optimizer.state_dict())


def test_copies_know_where_they_belong() -> None:
    tensor = _pieces.make([(2, 4), (7, 8)], 9, torch.float32)
    tensor.copy_(torch.tensor([1.0, 2.0, 3.0]))
    copies = [
        tensor.to("cpu:0"),  # which torch copies
        tensor.clone(),
        copy.deepcopy(tensor),
        tensor.double(),
        through_a_file(tensor),
    ]
    for copied in copies:
        assert copied.data_ptr() != tensor.data_ptr()
        assert copied.global_offsets == ((2,), (7,))
        assert _pieces.get_elements(copied) == 9
        found = _pieces.find([copied], 3, 4)
        assert found is not None and found.tolist() == [2.0]
        assert _pieces.find([copied], 3, 5) is None
    assert type(copies[-1]) is torch.Tensor
    assert not hasattr(tensor[:2], "global_offsets")


def save_in_the_background(folder: str) -> None:
    model, optimizer = make(Layout(2, 1, "256"))
    train(model, optimizer, range(2))
    saved = dcp.async_save({"optim": optimizer}, checkpoint_id=folder)
    saved.result()
    before = optimizer.state_dict()
    train(model, optimizer, range(2))
    dcp.load({"optim": optimizer}, checkpoint_id=folder)
    assert is_equal(optimizer.state_dict(), before)
    optimizer.close()


def test_async_save(workers: Workers, tmp_path: pathlib.Path) -> None:
    workers.run(save_in_the_background, str(tmp_path))


def test_a_torch_that_does_not_know_pieces(
    workers: Workers, tmp_path: pathlib.Path
) -> None:
    """What it saves of one rank is not loaded on another one."""
    for message in workers.run_failing(save_as_an_older_torch, str(tmp_path)):
        assert "the saved state lacks elements" in message


def save_as_an_older_torch(folder: str) -> None:
    with mock.patch.object(_pieces, "_is_known_to_torch", lambda: False):
        model, optimizer = make(Layout(2, 1))
        dcp.save({"optim": optimizer}, checkpoint_id=folder)
        saved = optimizer.state_dict()
        optimizer.load_state_dict(saved)  # on the same rank
        state = {"optim": optimizer.state_dict()}
        dcp.load(state, checkpoint_id=folder)
        errors = []
        try:
            optimizer.load_state_dict(state["optim"])
        except ZeroOptError as error:
            errors.append(str(error))
    found: list[Any] = [None, None]
    torch.distributed.all_gather_object(found, errors)
    # The state of rank 0 is right there, and wrong on rank 1.
    raise ValueError(found[0] + found[1])


def make_halves() -> list[Any]:
    """The states of two ranks, of which each has a part of `exp_avg`."""
    optimizer = zo.AdamW(nn.Linear(3, 2))
    halves = [optimizer.state_dict(), optimizer.state_dict()]
    for state, interval in zip(halves, ((0, 4), (4, 6)), strict=True):
        part = _pieces.make([interval], 6, torch.float32)
        state["state"][0]["exp_avg"] = part.fill_(interval[0])
    return halves


def test_states_of_all_ranks_are_merged() -> None:
    model = nn.Linear(3, 2)
    optimizer = zo.AdamW(model)
    halves = make_halves()
    optimizer.load_state_dict(_checkpoint.merge(halves))
    found = optimizer.state[model.weight]["exp_avg"]
    assert found.tolist() == [0, 0, 0, 0, 4, 4]
    before = optimizer.state_dict()
    del halves[1]["state"][0]["exp_avg"]
    for states, message in (
        (halves, "lacks elements 0 to 6 of 'exp_avg' of 'weight'"),
        ([halves[0]], "lacks elements 0 to 6 of 'exp_avg' of 'weight'"),
        ([halves[0], {}], "the state is no state of an optimizer"),
    ):
        with pytest.raises(ZeroOptError, match=message):
            optimizer.load_state_dict(_checkpoint.merge(states))
        assert is_equal(optimizer.state_dict(), before)


MODELS: dict[str, Any] = {
    "wider": lambda: nn.Linear(4, 2),
    "more": lambda: nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2)),
    "dtype": lambda: nn.Linear(3, 2).bfloat16(),
}
MISSING = "Missing key in checkpoint state_dict: optim.state."


@pytest.mark.parametrize(
    "kind, message",
    [
        ("wider", r"Size mismatch between saved torch.Size\(\[6\]\) and current: "),
        ("more", MISSING + "2.exp_avg"),
        ("dtype", MISSING + "0.master"),
        ("optimizer", MISSING + "0.momentum_buffer"),
        ("truncated", "."),
        ("renamed", "the saved state has parameter 'weight' in place of 'w'"),
    ],
)
def test_wrong_checkpoints(tmp_path: pathlib.Path, kind: str, message: str) -> None:
    """Nothing is loaded, and the optimizer can go on."""
    folder = str(tmp_path)
    dcp.save({"optim": zo.AdamW(nn.Linear(3, 2))}, checkpoint_id=folder)
    if kind == "truncated":
        for file in tmp_path.glob("*.distcp"):
            file.write_bytes(file.read_bytes()[:-200])
    model = MODELS.get(kind, lambda: nn.Linear(3, 2))()
    params = (
        zip(("w", "b"), model.parameters(), strict=True) if kind == "renamed" else model
    )
    optimizer = zo.SGD(params) if kind == "optimizer" else zo.AdamW(params)
    before = optimizer.state_dict()
    with pytest.raises((CheckpointException, ZeroOptError), match=message):
        dcp.load({"optim": optimizer}, checkpoint_id=folder)
    assert is_equal(optimizer.state_dict(), before)
    sum(p.float().sum() for p in model.parameters()).backward()
    optimizer.step()
