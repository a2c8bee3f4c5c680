# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters that others move, replace or write are taken over, and never trained past."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from ranks import Workers
from torch import nn

import zero_opt.torch as zo
from zero_opt import ZeroOptError

Change = Callable[[nn.Module], None]


def make(dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).to(dtype)


def fill(model: nn.Module) -> None:
    nn.init.constant_(model[0].weight, 0.25)


def fill_data(model: nn.Module) -> None:
    """A write that torch does not count."""
    model[0].weight.data.fill_(0.25)


def load(model: nn.Module) -> None:
    model.load_state_dict({k: v * 0 + 0.25 for k, v in model.state_dict().items()})


def assign(model: nn.Module) -> None:
    values = {k: v * 0 + 0.25 for k, v in model.state_dict().items()}
    model.load_state_dict(values, assign=True)


def move(model: nn.Module) -> None:
    """As .to() does to another dtype and back."""
    dtype = model[0].weight.dtype
    model.to(torch.float64).to(dtype)


def share(model: nn.Module) -> None:
    model.share_memory()


def replace(model: nn.Module) -> None:
    model[2].bias = nn.Parameter(torch.ones_like(model[2].bias))


def set_data(model: nn.Module) -> None:
    model[2].bias.data = torch.ones_like(model[2].bias)


CHANGES = [fill, fill_data, load, assign, move, share, replace, set_data]


def train(dtype: torch.dtype, change: Change, zero: int) -> float:
    """The largest difference between a model that is changed and trained on, and one that
    begins with these values."""
    model = make(dtype)
    optimizer = zo.SGD(model, lr=0.0, zero=zero)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 5, generator=generator).to(dtype)
    # A step that leaves master weights with the values of the parameters.
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.5
    change(model)
    values = copy.deepcopy(model.state_dict())
    other = make(dtype)
    other.load_state_dict(values)
    second = zo.SGD(other, lr=0.5, zero=zero)
    for accumulation in (1, 2, 2):
        for each, step in ((model, optimizer), (other, second)):
            for _ in range(accumulation):
                each(x).square().mean().backward()
            step.step()
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    difference = max((p - q).abs().max().item() for p, q in pairs)
    assert any(not torch.equal(p, values[name]) for name, p in model.named_parameters()), (
        "nothing was trained"
    )
    optimizer.close()
    second.close()
    return difference


def test_master_weights_stay() -> None:
    """A parameter that was moved and not changed keeps the bits of its master weights."""
    model = make(torch.bfloat16)
    optimizer = zo.SGD(model, lr=0.01)
    model(torch.ones(2, 5, dtype=torch.bfloat16)).square().mean().backward()
    optimizer.step()
    before = optimizer.state_dict()["state"][0]["master"]
    assert not torch.equal(before, before.bfloat16().float())
    move(model)
    optimizer.param_groups[0]["lr"] = 0.0
    model(torch.ones(2, 5, dtype=torch.bfloat16)).square().mean().backward()
    optimizer.step()
    assert torch.equal(optimizer.state_dict()["state"][0]["master"], before)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_one_rank(dtype: torch.dtype, change: Change) -> None:
    assert train(dtype, change, zero=1) == 0


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("zero", [0, 2])
def test_two_ranks(workers: Workers, change: Change, zero: int) -> None:
    assert workers.run(train, torch.bfloat16, change, zero) == [0, 0]


def test_a_replaced_parameter_is_in_the_groups() -> None:
    model = make(torch.float32)
    optimizer = zo.SGD(model, lr=0.5)
    old = model[2].bias
    replace(model)
    model(torch.ones(1, 5)).sum().backward()
    optimizer.step()
    assert any(p is model[2].bias for p in optimizer.param_groups[0]["params"])
    assert not old._post_accumulate_grad_hooks
    assert not torch.equal(model[2].bias, torch.ones(3))


def test_untied_parameters() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    optimizer = zo.SGD(model, lr=0.5)
    model[1].weight = nn.Parameter(torch.ones(4, 4))
    with pytest.raises(ZeroOptError, match=r"parameter '0.weight' was tied to .*tie them"):
        model(torch.ones(1, 4)).sum().backward()
    model[1].weight = model[0].weight
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()


def test_other_types() -> None:
    model = make(torch.float32)
    optimizer = zo.SGD(model, lr=0.5)
    model.to(torch.bfloat16)
    message = (
        r"parameter '0.weight' has dtype torch.bfloat16, and had dtype torch.float32 when "
        "the optimizer was created; create the optimizer after such a change"
    )
    with pytest.raises(ZeroOptError, match=message):
        model(torch.ones(1, 5, dtype=torch.bfloat16)).sum().backward()
    model.to(torch.float32)
    model(torch.ones(1, 5)).sum().backward()
    optimizer.step()
    model[0].weight = nn.Parameter(torch.ones(4, 4))
    with pytest.raises(ZeroOptError, match=r"'0.weight' has shape \(4, 4\), and had shape"):
        optimizer.step()


def test_moves_within_a_step() -> None:
    model = make(torch.float32)
    optimizer = zo.SGD(model, lr=0.5)
    place = model[0].weight.data_ptr()
    model(torch.ones(1, 5)).sum().backward()
    move(model)  # the same values elsewhere
    optimizer.step()
    assert model[0].weight.data_ptr() == place
    model(torch.ones(1, 5)).sum().backward()
    model[0].weight.data = torch.ones(4, 5)
    optimizer.zero_grad()
    model(torch.ones(1, 5)).sum().backward()
    optimizer.step()
    assert model[0].weight.data_ptr() == place
    assert not torch.equal(model[0].weight, torch.ones(4, 5))
    assert (model[0].weight - 1).abs().max() < 1


def shrink(model: nn.Module) -> None:
    for parameter in model.parameters():
        with torch.no_grad():
            parameter.mul_(0.75)


def shrink_data(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.data.mul_(0.75)


def shrink_new(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.data = parameter.data * 0.75


@pytest.mark.parametrize("write", [shrink, shrink_data, shrink_new])
@pytest.mark.parametrize("where", ["before", "between", "behind"])
@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        (torch.float32, {}),
        (torch.float32, {"offload": True}),
        (torch.bfloat16, {}),
        (torch.bfloat16, {"zero": 2, "offload": True}),
    ],
)
def test_a_write_anywhere_within_a_step(
    write: Change,
    where: str,
    dtype: torch.dtype,
    options: dict[str, Any],
) -> None:
    """The update starts from what was written, as torch's."""
    model = make(dtype)
    twin = copy.deepcopy(model).float()
    optimizer = zo.SGD(model, lr=0.125, **options)
    torch_optimizer = torch.optim.SGD(twin.parameters(), lr=0.125)
    passes = 2
    for _ in range(3):
        for number in range(passes):
            if where == "between" or (where == "before" and number == 0):
                write(model)
                write(twin)
            for one in (model, twin):
                sample = torch.ones(1, 5, dtype=next(one.parameters()).dtype)
                (one(sample).sum() / passes).backward()
        if where == "behind":
            write(model)
            write(twin)
        for one in (optimizer, torch_optimizer):
            one.step()
            one.zero_grad()
    tolerance = 1e-6 if dtype is torch.float32 else 2e-2
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a.float(), b, rtol=tolerance, atol=tolerance)


def test_replaced_within_a_step() -> None:
    model = make(torch.float32)
    optimizer = zo.SGD(model, lr=0.5)
    model(torch.ones(1, 5)).sum().backward()
    assign(model)
    model(torch.ones(1, 5)).sum().backward()
    with pytest.raises(ZeroOptError, match="parameter '0.weight' was replaced after a"):
        optimizer.step()
    optimizer.zero_grad()
    model.zero_grad()
    before = model[2].bias.detach().clone()
    model(torch.ones(1, 5)).sum().backward()
    optimizer.step()
    assert torch.equal(model[2].bias, before - 0.5)


def test_transposed_data() -> None:
    model = nn.Linear(4, 4, bias=False)
    optimizer = zo.SGD(model, lr=1.0)
    model.weight.data = model.weight.data.t()
    before = model.weight.detach().clone()
    gradient = torch.arange(16.0).view(4, 4)
    (model.weight * gradient).sum().backward()
    optimizer.step()
    assert torch.equal(model.weight, before - gradient)


@pytest.mark.parametrize("passes", [0, 1])
def test_a_frozen_parameter_that_thaws(passes: int) -> None:
    """Before a step, or behind a backward pass of it."""
    model = make(torch.float32)
    model[0].weight.requires_grad_(False)
    optimizer = zo.SGD(model, lr=0.5)
    for _ in range(passes):
        model(torch.ones(1, 5)).sum().backward()
    model[0].weight.requires_grad_(True)
    message = "parameter '0.weight' required no gradient when the optimizer was created"
    with pytest.raises(ZeroOptError, match=message):
        model(torch.ones(1, 5)).sum().backward()
    with pytest.raises(ZeroOptError, match=message):
        optimizer.step()
    model[0].weight.requires_grad_(False)
    optimizer.zero_grad()
    model(torch.ones(1, 5)).sum().backward()
    optimizer.step()


def test_a_parameter_that_freezes() -> None:
    """It keeps its value, as in torch."""
    model = make(torch.float32)
    optimizer = zo.AdamW(model, lr=0.5, weight_decay=0.5)
    model[0].weight.requires_grad_(False)
    before = model[0].weight.detach().clone()
    model(torch.ones(1, 5)).sum().backward()
    optimizer.step()
    assert torch.equal(model[0].weight, before)


def test_groups_of_a_model() -> None:
    """A list of groups says nothing of replaced parameters; `model` does."""
    model = make(torch.float32)
    groups = [{"params": model[0]}, {"params": list(model[2].parameters()), "lr": 0.5}]
    optimizer = zo.SGD(groups, lr=0.25, model=model)
    assign(model)
    before = model[2].bias.clone()
    model(torch.ones(1, 5)).sum().backward()
    optimizer.step()
    assert torch.equal(model[2].bias, before - 0.5)
    assert optimizer.param_groups[1]["params"][1] is model[2].bias
    wrapped = nn.DataParallel(make(torch.float32))
    with pytest.raises(ZeroOptError, match="the model is wrapped in DataParallel"):
        zo.SGD(list(wrapped.parameters()), model=wrapped)
