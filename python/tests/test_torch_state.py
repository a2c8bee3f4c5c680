# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State in the format of torch's optimizers, from them and to them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from checkpoints import Layout, make, train
from models import make_model
from ranks import Workers
from test_state import is_equal, through_a_file
from torch import nn
from training import get_rank, list_groups

import zero_opt.torch as zo
from zero_opt import ZeroOptError

# The values of parameters are about 1, and the steps add a few roundings.
BOUND = 2e-6
KINDS: list[tuple[Any, Any, dict[str, Any]]] = [
    (zo.AdamW, torch.optim.AdamW, {}),
    (zo.Adam, torch.optim.Adam, {"betas": (0.0, 0.9)}),
    (zo.SGD, torch.optim.SGD, {"momentum": 0.9}),
    (zo.SGD, torch.optim.SGD, {}),
]


def get_unnamed_groups(model: nn.Module) -> list[dict[str, Any]]:
    return [
        group | {"params": [parameter for _, parameter in group["params"]]}
        for group in list_groups(model)
    ]


def measure_difference(model: nn.Module, other: nn.Module) -> float:
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return max((p - q).abs().max().item() for p, q in pairs if p.numel())


@pytest.mark.parametrize("ours, theirs, options", KINDS)
def test_to_torch_and_back(ours: Any, theirs: Any, options: dict[str, Any]) -> None:
    """Three steps each with our optimizer, torch's and ours, and nine with torch's."""
    options = {"lr": 1e-2, "weight_decay": 0.1} | options
    reference, model = make_model("mlp"), make_model("mlp")
    expected = theirs(reference.parameters(), **options)
    train(reference, expected, range(9))
    saved: dict[str, Any] = {}
    for number, kind in enumerate((ours, theirs, ours)):
        trained = make_model("mlp", seed=number + 1)
        trained.load_state_dict(model.state_dict())
        optimizer = kind(trained if kind is ours else trained.parameters(), lr=1.0)
        if number:
            optimizer.load_state_dict(through_a_file(saved))
            assert optimizer.param_groups[0]["lr"] == 1e-2
        else:
            optimizer.param_groups[0].update(options)
        train(trained, optimizer, range(3 * number, 3 * number + 3))
        if kind is ours:
            saved = optimizer.consolidate_state_dict()
        else:
            saved = optimizer.state_dict()
        model = copy.deepcopy(trained)
    assert measure_difference(model, reference) < BOUND
    last = expected.state_dict()["state"]
    for key, entry in last.items():
        found = saved["state"][key]
        assert set(entry) <= set(found)
        for name, value in entry.items():
            if value is not None:
                torch.testing.assert_close(found[name], value)
    unused = set(saved["state"]) - set(last)
    assert all(saved["state"][key].get("step", 0) == 0 for key in unused)
    assert set(theirs([nn.Parameter(torch.ones(1))]).defaults) <= set(
        saved["param_groups"][0]
    )


def consolidate(layout: Layout) -> tuple[bool, Any]:
    """Whether a state that all ranks load is the one that rank 0 got; and that one."""
    model, optimizer = make(layout)
    train(model, optimizer, range(3))
    whole = optimizer.consolidate_state_dict()
    assert bool(whole) == (get_rank() == 0)
    found = [whole]
    if torch.distributed.is_initialized():
        torch.distributed.broadcast_object_list(found)
    before = optimizer.state_dict()
    train(model, optimizer, range(3, 4))
    optimizer.load_state_dict(found[0])
    after = optimizer.state_dict()
    for entry in (*before["state"].values(), *after["state"].values()):
        for name in ("beta1_t", "beta2_t"):
            entry[name] = round(entry[name].item(), 14)
        entry.pop("master", None)  # those of the parameters
    optimizer.close()
    before["param_groups"] = after["param_groups"]
    return is_equal(before, after), whole


@pytest.mark.parametrize("zero", [0, 1, 2])
def test_two_ranks(workers: Workers, zero: int) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        (is_same, whole), (is_other_same, _) = workers.run(
            consolidate, Layout(2, zero, "256", dtype)
        )
        assert is_same and is_other_same
        model = make_model("mlp", dtype)
        optimizer = torch.optim.AdamW(get_unnamed_groups(model))
        optimizer.load_state_dict(whole)
        train(model, optimizer, range(1))
        for parameter, entry in optimizer.state.items():
            assert entry["exp_avg"].shape == entry["exp_avg_sq"].shape == parameter.shape


def test_master_weights_of_torch_state() -> None:
    """torch has none: they are the parameters, whatever they were before."""
    model = make_model("mlp", torch.bfloat16)
    theirs = torch.optim.AdamW(model.parameters(), lr=1e-2)
    train(model, theirs, range(2))
    ours = zo.AdamW(model, lr=1e-2)
    train(model, ours, range(2, 4))  # master weights that are no bfloat16
    ours.load_state_dict(theirs.state_dict())
    for p in model.parameters():
        if p.requires_grad and p.numel():
            assert torch.equal(ours.state[p]["master"], p.detach().flatten().float())
    assert ours.state[model.last.weight]["exp_avg"].dtype is torch.float32


def test_options_that_no_step_has() -> None:
    model = nn.Linear(3, 2)
    for kind, theirs, option in (
        (zo.AdamW, torch.optim.AdamW, "amsgrad"),
        (zo.AdamW, torch.optim.AdamW, "maximize"),
        (zo.SGD, torch.optim.SGD, "nesterov"),
    ):
        options = {"momentum": 0.9} if kind is zo.SGD else {}
        state = theirs(model.parameters(), **{option: True}, **options).state_dict()
        optimizer = kind(model)
        message = f"group 0 of the saved state has '{option}' True, which no step computes"
        with pytest.raises(ZeroOptError, match=message):
            optimizer.load_state_dict(state)
        optimizer.close()


def test_state_of_another_optimizer_of_torch() -> None:
    model = nn.Linear(3, 2)
    other = torch.optim.SGD(model.parameters(), momentum=0.9)
    model(torch.ones(1, 3)).sum().backward()
    other.step()
    optimizer = zo.AdamW(model)
    before = optimizer.state_dict()
    with pytest.raises(ZeroOptError, match="lacks elements 0 to 6 of 'exp_avg'"):
        optimizer.load_state_dict(other.state_dict())
    assert is_equal(optimizer.state_dict(), before)


def test_counts_of_steps() -> None:
    """They are those of torch, also where a product of betas is rounded to 0."""
    model = nn.Linear(1, 1)
    optimizer = zo.AdamW(model, betas=(0.5, 0.75))
    for count in (1, 7, 100, 1100, 1200, 4000):
        state = optimizer.consolidate_state_dict()
        state["state"][0]["step"] = torch.tensor(float(count))
        optimizer.load_state_dict(state)
        found = optimizer.consolidate_state_dict()["state"][0]["step"].item()
        # 0.75 ** 2588 is the least that is not 0.
        assert found == min(count, 2588)
