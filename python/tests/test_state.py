# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State that is saved and loaded on the same ranks continues with the same bits."""

from __future__ import annotations

import copy
import io
import pathlib
from typing import Any

import pytest
import torch
from models import make_model
from ranks import Workers
from torch import nn
from training import get_rank, list_groups

import zero_opt.torch as zo
from zero_opt import ZeroOptError


def run(model: nn.Module, optimizer: zo.AdamW, steps: range) -> None:
    for step in steps:
        generator = torch.Generator().manual_seed(10 * step + get_rank())
        model.uses_adapter = step % 2 == 1
        for _ in range(2):
            model.compute_loss(generator).backward()
        optimizer.step()


def through_a_file(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_state_within_an_accumulation() -> None:
    model = make_model("mlp", torch.float32)
    optimizer = zo.AdamW(model)
    run(model, optimizer, range(1))
    optimizer.state_dict()
    model.compute_loss(torch.Generator()).backward()
    for call in (optimizer.state_dict, optimizer.consolidate_state_dict):
        message = f"{call.__name__}.. came between a backward pass and step.., and does not"
        with pytest.warns(UserWarning, match=message) as caught:
            call()
        assert caught[0].filename == __file__


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_offloaded_state_and_written_parameters(dtype: torch.dtype) -> None:
    """State goes from the host's memory to the device's and back, with what others have
    written to parameters."""
    models = [make_model("mlp", dtype, seed=seed) for seed in range(3)]
    offloads = (True, False, True)
    optimizers = [
        zo.AdamW(model, lr=0.01, offload=offload)
        for model, offload in zip(models, offloads, strict=True)
    ]
    run(models[0], optimizers[0], range(1))
    for number in (1, 2):
        models[number].load_state_dict(models[number - 1].state_dict())
        state = through_a_file(optimizers[number - 1].state_dict())
        optimizers[number].load_state_dict(state)
    for model, optimizer in zip(models, optimizers, strict=True):
        with torch.no_grad():
            model.last.weight.mul_(2)
            model.first.weight.data.add_(1)
        run(model, optimizer, range(1, 3))
    for model in models[1:]:
        for p, q in zip(models[0].parameters(), model.parameters(), strict=True):
            assert torch.equal(p, q)


def resume(dtype: torch.dtype, zero: int, order: str) -> bool:
    """Whether a run that was saved and loaded ends like one that was not."""
    ends = []
    for is_saved in (False, True):
        model = make_model("mlp", dtype)
        optimizer = zo.AdamW(list_groups(model), zero=zero, max_norm=0.5)
        run(model, optimizer, range(3))
        if is_saved:
            saved = through_a_file({"m": model.state_dict(), "o": optimizer.state_dict()})
            optimizer.close()
            model = make_model("mlp", dtype, seed=5)
            optimizer = zo.AdamW(list_groups(model), lr=1, zero=zero, max_norm=0.5)
            run(model, optimizer, range(1))  # there is other state to be replaced
            loads = {
                "m": lambda model=model, saved=saved: model.load_state_dict(saved["m"]),
                "o": lambda optimizer=optimizer, saved=saved: optimizer.load_state_dict(
                    saved["o"]
                ),
            }
            for which in order:
                loads[which]()
        run(model, optimizer, range(3, 6))
        ends.append((model.state_dict(), optimizer.state_dict()))
        optimizer.close()
    return is_equal(ends[0], ends[1])


def is_equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(is_equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(is_equal(x, y) for x, y in zip(a, b, strict=True))
    return a == b


@pytest.mark.parametrize("order", ["mo", "om"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_one_rank(dtype: torch.dtype, order: str) -> None:
    assert resume(dtype, 1, order)


@pytest.mark.parametrize("order", ["mo", "om"])
@pytest.mark.parametrize("zero", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_two_ranks(workers: Workers, dtype: torch.dtype, zero: int, order: str) -> None:
    assert workers.run(resume, dtype, zero, order) == [True, True]


def test_the_model_has_its_own_state() -> None:
    """A state that is loaded alone changes no parameter, as in torch."""
    for dtype in (torch.float32, torch.bfloat16):
        model = make_model("mlp", dtype)
        optimizer = zo.AdamW(model)
        run(model, optimizer, range(2))
        saved = through_a_file(optimizer.state_dict())
        assert all("parameter" not in entry for entry in saved["state"].values())
        other = make_model("mlp", dtype, seed=9)
        second = zo.AdamW(other)
        run(other, second, range(1))
        before = through_a_file(other.state_dict())
        second.load_state_dict(saved)
        assert is_equal(dict(other.state_dict()), dict(before))
        run(other, second, range(2, 3))
        assert not torch.equal(other.last.weight, before["last.weight"])
        difference = (other.last.weight - before["last.weight"]).abs().max()
        assert difference < 0.1


def test_loads_param_groups() -> None:
    model = nn.Linear(3, 2)
    optimizer = zo.SGD(model, lr=0.5)
    saved = optimizer.state_dict()
    optimizer.param_groups[0]["lr"] = 0.25
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_wrong_states() -> None:
    model = nn.Linear(3, 2)
    optimizer = zo.AdamW(model)
    good = optimizer.state_dict()

    def refuse(message: str, state: Any) -> None:
        with pytest.raises(ZeroOptError, match=message):
            optimizer.load_state_dict(state)
        assert is_equal(optimizer.state_dict(), good)

    for nothing in ({}, [], good["state"], {"state": 1, "param_groups": [{}]}):
        refuse("the state is no state of an optimizer; load what state_dict", nothing)
    wider = zo.AdamW(nn.Linear(4, 2)).state_dict()
    refuse("has 8 elements of 'exp_avg' of 'weight', expected 6; load the state of", wider)
    two = [{"params": model.weight}, {"params": model.bias}]
    grouped = torch.optim.AdamW(two).state_dict()
    refuse(
        r"has parameter groups of \[1, 1\] parameters, and the optimizer of \[2\]", grouped
    )
    refuse(
        "the saved state lacks elements 0 to 6 of 'exp_avg' of 'weight': it was saved by",
        zo.SGD(nn.Linear(3, 2)).state_dict(),
    )
    for entry, value, message in (
        ("beta1_t", torch.tensor(-1.0), "has 'beta1_t' -1.0, expected a product"),
        ("beta1_t", "no number", "has 'beta1_t' nan, expected a product"),
        (
            "exp_avg",
            torch.zeros(6, dtype=torch.int64),
            "has 'exp_avg' of 'weight' in torch.int",
        ),
        (
            "exp_avg",
            [0.0] * 6,
            "the saved state lacks elements 0 to 6 of 'exp",
        ),
    ):
        bad = copy.deepcopy(good)
        bad["state"][0][entry] = value
        refuse(message, bad)
    optimizer.load_state_dict(copy.deepcopy(good))
    model(torch.ones(1, 3)).sum().backward()
    with pytest.raises(ZeroOptError, match="between a backward pass and step"):
        optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad()
    optimizer.load_state_dict(optimizer.state_dict())


def test_the_state_is_a_copy(tmp_path: pathlib.Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = zo.AdamW(model)

    def step() -> None:
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()

    def refuse(message: str, call: Any) -> None:
        with pytest.raises(ZeroOptError, match=message):
            call()

    step()
    refuse("optimizer.state cannot be set", lambda: setattr(optimizer, "state", {}))
    entry = optimizer.state[model.weight]
    for change in (
        lambda: entry.update(exp_avg=torch.zeros(6)),
        lambda: entry.__setitem__("exp_avg", torch.zeros(6)),
        entry.clear,
    ):
        refuse("an entry of optimizer.state is a copy; change state_dict", change)
    copied = copy.deepcopy(entry)
    copied["exp_avg"] = torch.zeros(6)
    assert is_equal(through_a_file(dict(entry)), dict(entry))
    step()  # what was read may be kept
    message = "'exp_avg' of parameter 'weight' in optimizer.state was written, and is a co"
    optimizer.state[model.weight]["exp_avg"].zero_()
    refuse(message, step)
    refuse(message, optimizer.step)
    optimizer.zero_grad()
    saved = optimizer.state_dict()
    saved["state"][0]["exp_avg"].zero_()
    optimizer.load_state_dict(saved)
    assert not optimizer.state[model.weight]["exp_avg"].any()
    step()
    optimizer.save_checkpoint(tmp_path)
    entry["exp_avg_sq"].mul_(2)
    optimizer.load_checkpoint(tmp_path)
    step()
    kept = [*optimizer.state.values()]
    step()
    kept[1]["exp_avg_sq"].mul_(2)
    refuse("'exp_avg_sq' of parameter 'bias' in", step)


def save_and_load_elsewhere() -> str:
    model = nn.Linear(40, 40)
    optimizer = zo.AdamW(model, zero=1)
    saved = optimizer.state_dict()
    optimizer.close()
    states = [None, None]
    torch.distributed.all_gather_object(states, saved)
    optimizer = zo.AdamW(model, zero=1)
    try:
        optimizer.load_state_dict(states[1 - get_rank()])
    except ZeroOptError as error:
        return str(error)
    return ""


def test_states_of_other_ranks(workers: Workers) -> None:
    for message in workers.run(save_and_load_elsewhere):
        assert "it was saved by another rank" in message
