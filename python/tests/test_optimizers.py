# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every optimizer against torch's or its formula in f64; parameter groups and schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from models import make_model
from torch import nn

import zero_opt.torch as zo
from zero_opt import ZeroOptError

# Of the values of parameters, which are about 1. The largest difference after three steps
# is a few units in the last place of f32.
TOLERANCE = 1e-6


class Lion(torch.optim.Optimizer):
    """The formula of Lion; torch has none."""

    def __init__(self, params: Any, lr: float, betas: Any, weight_decay: float) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "wd": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["wd"])
                p.sub_(group["lr"] * (beta1 * m + (1 - beta1) * p.grad).sign())
                m.mul_(beta2).add_((1 - beta2) * p.grad)


CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    (zo.AdamW, torch.optim.AdamW, {"lr": 1e-2, "weight_decay": 0.3}),
    (zo.Adam, torch.optim.Adam, {"lr": 1e-2, "weight_decay": 0.3, "betas": (0.8, 0.9)}),
    (zo.SGD, torch.optim.SGD, {"lr": 1e-2}),
    (zo.SGD, torch.optim.SGD, {"lr": 1e-2, "momentum": 0.9, "weight_decay": 0.3}),
    (zo.Lion, Lion, {"lr": 1e-3, "weight_decay": 0.3, "betas": (0.9, 0.99)}),
]


def train(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    change: Callable[[dict[str, Any], int], None] = lambda group, step: None,
) -> None:
    """Trains on the same gradients, and compares after each of three steps."""
    model = make_model("mlp")
    # At a rounded 0, the sign of Lion is either.
    copies = {
        name: nn.Parameter(p.detach().double())
        for name, p in model.named_parameters()
        if p.requires_grad
    }
    mine, other = ours(model), theirs(copies.values())
    for name, p in model.named_parameters():
        if p.requires_grad:
            p.register_hook(lambda g, name=name: setattr(copies[name], "grad", g.double()))
    generator = torch.Generator().manual_seed(3)
    for step in range(3):
        model.uses_adapter = step == 1
        for optimizer in (mine, other):
            for group in optimizer.param_groups:
                change(group, step)
        model.compute_loss(generator).backward()
        mine.step()
        other.step()
        other.zero_grad()
        for name, p in model.named_parameters():
            if name in copies and p.numel():
                difference = (p.double() - copies[name]).abs().max().item()
                assert difference < TOLERANCE, (step, name)


@pytest.mark.parametrize("ours, theirs, options", CASES)
def test_formula(ours: Any, theirs: Any, options: dict[str, Any]) -> None:
    train(lambda model: ours(model, **options), lambda params: theirs(params, **options))


def test_param_groups_are_read_at_step() -> None:
    def change(group: dict[str, Any], step: int) -> None:
        group["lr"] = 0.01 / (1 + step)
        group["betas"] = (0.5, 0.9)
        group["weight_decay"] = 0.1 * step
        group["eps"] = 1e-6

    train(zo.AdamW, torch.optim.AdamW, change)
    with pytest.raises(AssertionError):  # the test can fail
        seen: list[int] = []
        train(
            zo.AdamW,
            torch.optim.AdamW,
            lambda group, step: seen.append(step) or group.update(lr=len(seen) * 1e-3),
        )


def test_momentum_is_read_at_step() -> None:
    def change(group: dict[str, Any], step: int) -> None:
        group["momentum"] = 0.9 - 0.2 * step

    train(
        lambda model: zo.SGD(model, lr=0.1, momentum=0.5),
        lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.5),
        change,
    )


@pytest.mark.parametrize("before, now", [(0.0, 0.9), (0.9, 0.0)])
def test_momentum_that_begins_or_ends(before: float, now: float) -> None:
    """torch makes a buffer with the first momentum, and then keeps it."""
    model = nn.Linear(3, 2)
    groups = [{"params": [p]} for p in model.parameters()]
    optimizer = zo.SGD(groups, momentum=0.3)

    def step(momentum: float) -> None:
        model(torch.ones(1, 3)).sum().backward()
        optimizer.param_groups[1]["momentum"] = momentum
        optimizer.step()

    step(before)
    message = (
        f"in parameter group 1, momentum is {now} and was {before} in the last step: a "
        "change between 0 and another number needs other state; create a new optimizer"
    )
    with pytest.raises(ZeroOptError, match=message):
        step(now)
    optimizer.zero_grad()
    step(before)
    # A state that is loaded says its own.
    optimizer.load_state_dict(optimizer.state_dict())
    step(now)


def test_max_norm_is_read_at_step() -> None:
    model = nn.Linear(3, 2)
    optimizer = zo.SGD(model, lr=1.0, max_norm=1.0)
    for maximum in (0.5, 0.25):
        before = [p.detach().clone() for p in model.parameters()]
        optimizer.max_norm = maximum
        (100 * model(torch.ones(1, 3)).sum()).backward()
        optimizer.step()
        moved = zip(model.parameters(), before, strict=True)
        norm = sum((p - q).square().sum().item() for p, q in moved) ** 0.5
        assert abs(norm - maximum) < 1e-5
        assert optimizer.grad_norm == pytest.approx(100 * 8**0.5)


def make_params(kind: str, model: nn.Module) -> Any:
    return {
        "module": lambda: model,
        "parameters": model.parameters,
        "named_parameters": model.named_parameters,
        "groups": lambda: [{"params": list(model.parameters()), "lr": 0.125}],
        "named groups": lambda: [{"params": model.named_parameters(), "lr": 0.125}],
        "groups of modules": lambda: [
            {"params": model[0], "lr": 0.125},
            {"params": model[1].weight},
            {"params": [model[1].bias]},
        ],
    }[kind]()


NAMES = {
    "parameters": ["param.0", "param.1", "param.2", "param.3"],
    "groups": ["group0.0", "group0.1", "group0.2", "group0.3"],
    "groups of modules": ["weight", "bias", "group1.0", "group2.0"],
}


@pytest.mark.parametrize(
    "kind",
    [
        "module",
        "parameters",
        "named_parameters",
        "groups",
        "named groups",
        "groups of modules",
    ],
)
def test_ways_to_give_parameters(kind: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    optimizer = zo.SGD(make_params(kind, model), lr=0.125)
    before = [p.detach().clone() for p in model.parameters()]
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    names = NAMES.get(kind, [name for name, _ in model.named_parameters()])
    groups = optimizer.state_dict()["param_groups"]
    assert [name for group in groups for name in group["param_names"]] == names
    for p, q in zip(model.parameters(), before, strict=True):
        assert not torch.equal(p, q)
    assert [group["lr"] for group in optimizer.param_groups] == [0.125] * len(
        optimizer.param_groups
    )


@pytest.mark.parametrize(
    "make_schedule",
    [
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10),
        lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, 10),
        lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.5),
    ],
)
def test_schedulers(make_schedule: Any) -> None:
    rates = []
    for kind in (zo.AdamW, torch.optim.AdamW):
        model = nn.Linear(3, 2)
        params = model if kind is zo.AdamW else model.parameters()
        optimizer = kind(params, lr=0.1)
        schedule = make_schedule(optimizer)
        rates.append([])
        for _ in range(5):
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
            schedule.step()
            rates[-1].append((schedule.get_last_lr(), optimizer.param_groups[0]["betas"]))
    assert rates[0] == rates[1]
