# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints as files, which every torch saves on some ranks and loads on others."""

from __future__ import annotations

import copy
import os
import pathlib
from typing import Any

import pytest
import torch
from checkpoints import Layout, join, make, read, train
from models import make_model
from ranks import Workers
from test_state import is_equal
from torch import nn

import zero_opt.torch as zo
from zero_opt import ZeroOptError

BF16 = torch.bfloat16
LAYOUTS = [Layout(1, 0, dtype=BF16), Layout(2, 2, "256", BF16), Layout(3, 1, dtype=BF16)]


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
    class Alone:
        def run(self, function: Any, *arguments: Any) -> list[Any]:
            return [function(*arguments)]

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
    for call in ("save", "begin", "end", "load"):
        arguments = () if call == "end" else (folder,)
        with pytest.raises(ZeroOptError, match=rf"{call}_checkpoint\(\) came between"):
            getattr(optimizer, f"{call}_checkpoint")(*arguments)
    optimizer.zero_grad()
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
