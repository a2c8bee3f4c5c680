# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints as files, which every torch saves on some ranks and loads on others."""

from __future__ import annotations

import copy
import os
import pathlib
import shutil
import warnings
from typing import Any

import pytest
import torch
import torch.distributed as dist
from checkpoints import Layout, join, make, read, train
from models import make_model
from ranks import Workers
from test_state import is_equal
from torch import nn
from training import get_rank

import zero_opt.torch as zo
from zero_opt import ZeroOptError

BF16 = torch.bfloat16
LAYOUTS = [Layout(1, 0, dtype=BF16), Layout(2, 2, "256", BF16), Layout(3, 1, dtype=BF16)]


class Alone:
    """One rank, this process."""

    def run(self, function: Any, *arguments: Any) -> list[Any]:
        return [function(*arguments)]


def train_and_save(layout: Layout, folder: str, begins: bool) -> Any:
    model, optimizer = make(layout, offload=layout.ranks == 2)
    train(model, optimizer, range(3))
    if begins:
        optimizer.begin_checkpoint(folder, 3)
        result = copy.deepcopy(read(model, optimizer))
        train(model, optimizer, range(3, 5))
        optimizer.end_checkpoint()
    else:
        optimizer.save_checkpoint(folder, 3)
        result = read(model, optimizer)
    optimizer.close()
    return result


def load(layout: Layout, folder: str, trains: bool) -> Any:
    model, optimizer = make(layout, seed=5)
    # Frozen parameters are the model's.
    with torch.no_grad():
        model.frozen.copy_(make_model("mlp", layout.dtype).frozen)
    train(model, optimizer, range(1))  # there is other state to be replaced
    assert optimizer.load_checkpoint(folder) == 3
    if trains:
        train(model, optimizer, range(3, 5))
    result = read(model, optimizer)
    optimizer.close()
    return result


@pytest.mark.parametrize("begins", [False, True])
def test_other_ranks(
    workers: Workers, three_workers: Workers, tmp_path: pathlib.Path, begins: bool
) -> None:
    pools: dict[int, Any] = {1: Alone(), 2: workers, 3: three_workers}
    for saver in LAYOUTS:
        folder = str(tmp_path / f"{saver.ranks}")
        saved = join(pools[saver.ranks].run(train_and_save, saver, folder, begins))
        for loader in LAYOUTS:
            loaded = join(pools[loader.ranks].run(load, loader, folder, False))
            assert is_equal(loaded, saved), f"saved: {saver}, loaded: {loader}"


def test_continues_with_the_same_bits(workers: Workers, tmp_path: pathlib.Path) -> None:
    layout = LAYOUTS[1]
    ends = workers.run(train_and_save, layout, str(tmp_path / "a"), True)
    again = workers.run(load, layout, str(tmp_path / "a"), True)
    assert not is_equal(join(again), join(ends))  # two steps later
    workers.run(train_and_save, layout, str(tmp_path / "b"), False)
    other = workers.run(load, layout, str(tmp_path / "b"), True)
    assert is_equal(join(other), join(again))


def test_what_others_have_written(tmp_path: pathlib.Path) -> None:
    model, other = (make_model("mlp", BF16, seed=seed) for seed in (0, 1))
    optimizer, loader = zo.SGD(model, lr=0.5), zo.SGD(other, lr=0.5)
    with torch.no_grad():
        model.last.weight.fill_(3.0)
    model.last.bias = nn.Parameter(torch.full((3,), 2.0, dtype=BF16))
    optimizer.save_checkpoint(tmp_path / "a")
    other.last.weight = nn.Parameter(torch.zeros_like(other.last.weight))
    loader.load_checkpoint(os.fspath(tmp_path / "a"))
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(p, q) or not p.requires_grad


def test_refused(tmp_path: pathlib.Path) -> None:
    model = make_model("mlp")
    optimizer = zo.AdamW(model, lr=0.5)
    folder = tmp_path / "a"
    with pytest.raises(ZeroOptError, match="checkpoint"):
        optimizer.load_checkpoint(folder)
    optimizer.save_checkpoint(folder, 1)
    before = [p.detach().clone() for p in model.parameters()]
    model.compute_loss(torch.Generator()).backward()
    with pytest.raises(ZeroOptError, match=r"load_checkpoint\(\) came between"):
        optimizer.load_checkpoint(folder)
    optimizer.zero_grad()
    once = zo.AdamW(make_model("mlp"), lr=0.5, one_backward=True)
    once.param_groups[0]["params"][0].sum().backward()
    for call in ("save", "begin", "end"):
        arguments = () if call == "end" else (folder,)
        with pytest.raises(ZeroOptError, match=rf"{call}_checkpoint\(\) came between"):
            getattr(once, f"{call}_checkpoint")(*arguments)
    with pytest.raises(ZeroOptError, match="save_end"):
        optimizer.end_checkpoint()
    with pytest.raises(ZeroOptError, match="which this step does not have"):
        zo.AdamW(nn.Linear(3, 2), lr=0.5).load_checkpoint(folder)
    (file,) = folder.glob("*/*.safetensors")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ZeroOptError, match=file.name):
        optimizer.load_checkpoint(folder)
    for p, q in zip(model.parameters(), before, strict=True):
        assert torch.equal(p, q)
    optimizer.close()
    with pytest.raises(ZeroOptError, match="was closed"):
        optimizer.save_checkpoint(folder)


def close_with_a_checkpoint(folder: str, is_gone: bool) -> list[str]:
    model, optimizer = make(
        Layout(dist.get_world_size() if dist.is_initialized() else 1, 1)
    )
    optimizer.save_checkpoint(folder, 1)
    optimizer.begin_checkpoint(folder, 2)
    model.compute_loss(torch.Generator()).backward()
    if is_gone:
        shutil.rmtree(folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.close()
        optimizer.close()
    return [str(warning.message) for warning in caught]


def test_close_with_a_checkpoint(workers: Workers, tmp_path: pathlib.Path) -> None:
    """A rank that is alone ends it; with others it is lost."""
    folder = str(tmp_path / "a")
    assert close_with_a_checkpoint(folder, False) == []
    assert zo.AdamW(make_model("mlp")).load_checkpoint(folder) == 2
    message = (
        "close() came before end_checkpoint(), and the checkpoint that was begun in "
        f"'{folder}' is lost"
    )
    remedy = "; call end_checkpoint() on all ranks before close()"
    for found in workers.run(close_with_a_checkpoint, folder, False):
        assert found == [message + remedy]
    assert zo.AdamW(make_model("mlp")).load_checkpoint(folder) == 1
    (warning,) = close_with_a_checkpoint(folder, True)
    assert warning.startswith(f"{message} (") and warning.endswith(f"){remedy}")


PASSES = 4


def make_pass(model: nn.Module, number: int) -> None:
    generator = torch.Generator().manual_seed(10 * number + get_rank())
    # Not every pass has a gradient of the adapter.
    model.uses_adapter = number % 3 == 1
    model.compute_loss(generator).backward()


def finish(model: nn.Module, optimizer: zo.AdamW, first: int) -> Any:
    for number in range(first, PASSES):
        make_pass(model, number)
    optimizer.step()
    train(model, optimizer, range(1))
    result = read(model, optimizer)
    optimizer.close()
    return result


def save_within(layout: Layout, folder: str, begins: bool) -> Any:
    model, optimizer = make(layout)
    train(model, optimizer, range(2))
    for number in range(2):
        make_pass(model, number)
    if begins:
        optimizer.begin_checkpoint(folder, 2)
        make_pass(model, 2)
        optimizer.end_checkpoint()
        return finish(model, optimizer, 3)
    optimizer.save_checkpoint(folder, 2)
    assert optimizer.backward_passes == 2
    return finish(model, optimizer, 2)


def load_within(layout: Layout, folder: str, gradients: bool) -> Any:
    model, optimizer = make(layout, seed=5)
    with torch.no_grad():
        model.frozen.copy_(make_model("mlp", layout.dtype).frozen)
    assert optimizer.load_checkpoint(folder, gradients=gradients) == 2
    assert optimizer.backward_passes == (2 if gradients else 0)
    return finish(model, optimizer, optimizer.backward_passes)


@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("zero", [0, 1, 2])
def test_within_a_step(
    workers: Workers, tmp_path: pathlib.Path, zero: int, begins: bool
) -> None:
    layout = Layout(2, zero, "256")
    folder = str(tmp_path / "a")
    saved = join(workers.run(save_within, layout, folder, begins))
    assert is_equal(join(workers.run(load_within, layout, folder, True)), saved)
    # Where each rank has a sum of its own, 0 and 1 are alike. What a begun step has made
    # again is the same, too.
    other = Layout(2, 1 - zero) if zero < 2 else Layout(2, 2, "1024")
    assert is_equal(join(workers.run(load_within, other, folder, True)), saved)
    assert is_equal(join(workers.run(load_within, layout, folder, False)), saved)
    load_within(Layout(1, 0), folder, False)


def make_batch(model: nn.Module, batch: int, ranks: int) -> None:
    """One of 8 batches of a step. Losses are divided by the number of passes."""
    generator = torch.Generator().manual_seed(batch)
    model.uses_adapter = batch == 1
    (model.compute_loss(generator) * (ranks / 8)).backward()


def train_batches(layout: Layout, folder: str, loads: bool) -> Any:
    """Saves behind batch 4, or loads it."""
    model, optimizer = make(layout, seed=5 if loads else 0)
    if loads:
        with torch.no_grad():
            model.frozen.copy_(make_model("mlp", layout.dtype).frozen)
        optimizer.load_checkpoint(folder)
        assert optimizer.backward_passes == 4 // layout.ranks
    for batch in range(4 if loads else 0, 8):
        if batch == 4 and not loads:
            optimizer.save_checkpoint(folder)
        if batch % layout.ranks == get_rank():
            make_batch(model, batch, layout.ranks)
    optimizer.step()
    result = read(model, optimizer)
    optimizer.close()
    return result


@pytest.mark.parametrize("zero", [0, 2])
def test_within_a_step_on_other_ranks(
    workers: Workers, tmp_path: pathlib.Path, zero: int
) -> None:
    for first, ranks, second, others in (
        (workers, 2, Alone(), 1),
        (Alone(), 1, workers, 2),
    ):
        folder = str(tmp_path / str(ranks))
        saved = join(first.run(train_batches, Layout(ranks, zero), folder, False))
        loaded = join(second.run(train_batches, Layout(others, 2 - zero), folder, True))
        del saved["groups"], loaded["groups"]
        torch.testing.assert_close(loaded, saved, rtol=1e-4, atol=1e-6)


def test_within_a_step_that_is_left(tmp_path: pathlib.Path) -> None:
    model = make_model("mlp")
    optimizer = zo.SGD(model, lr=0.5)
    make_pass(model, 0)
    optimizer.save_checkpoint(tmp_path / "a")
    optimizer.save_checkpoint(tmp_path / "a")
    before = [p.detach().clone() for p in model.parameters()]
    optimizer.zero_grad()
    assert optimizer.backward_passes == 0
    optimizer.load_checkpoint(tmp_path / "a")
    assert optimizer.backward_passes == 1
    with pytest.raises(ZeroOptError, match=r"load_checkpoint\(\) came between"):
        optimizer.load_checkpoint(tmp_path / "a")
    optimizer.zero_grad()
    assert all(map(torch.equal, model.parameters(), before))
    optimizer.load_checkpoint(tmp_path / "a")
    optimizer.step()
    assert not all(map(torch.equal, model.parameters(), before))


def test_writes_behind_a_load_within_a_step(tmp_path: pathlib.Path) -> None:
    """What others write before the first backward pass is taken over, as between steps."""
    model = make_model("mlp", BF16)
    optimizer = zo.SGD(model, lr=0.5)
    make_pass(model, 0)
    optimizer.save_checkpoint(tmp_path / "a")
    optimizer.close()
    optimizer = zo.SGD(model, lr=0.0)
    optimizer.load_checkpoint(tmp_path / "a")
    model.last.weight.data.fill_(3.0)
    with torch.no_grad():
        model.first.bias.fill_(2.0)
    make_pass(model, 1)
    optimizer.step()
    assert (model.last.weight == 3.0).all() and (model.first.bias == 2.0).all()
    optimizer.load_checkpoint(tmp_path / "a")
    model.frozen.requires_grad_(True)
    with pytest.raises(ZeroOptError, match="required no gradient"):
        make_pass(model, 1)
