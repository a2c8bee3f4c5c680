# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Units of ZeRO stage 3 that a backward pass reaches on other ways than by the outputs of
their modules, and outputs that none reaches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from ranks import Workers
from test_stage3_hooks import Layer, Stack
from torch import nn
from training import get_rank

import zero_opt.torch as zo

Loss = Callable[[Any, torch.Tensor], torch.Tensor]


@dataclasses.dataclass
class Hidden:
    value: torch.Tensor


class Aside(Layer):
    """Puts a loss into an attribute, and more of it behind its output."""

    aside: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        self.aside = super().forward(y).square().mean()
        return y


class Affine(Layer):
    """Its output may be written."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.Linear.forward(self, x)


class Wrapped(Layer):
    """Returns an object of a class of its own."""

    def forward(self, x: torch.Tensor) -> Any:
        return Hidden(super().forward(x))


class Transposing(Layer):
    """A view of the weight is saved. The bias does not take part."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.aside = torch.tanh(x @ self.weight.t())
        return x * 2


class Partly(Layer):
    """A part of the unit is compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.part = torch.compile(super().forward, backend="aot_eager")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.part(x)
        self.aside = self.part(y * y).square().mean()
        return y


class Frozen(Transposing):
    """The weight is frozen, so no gradient of it arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.weight.requires_grad_(False)


def plainly(model: Stack, x: torch.Tensor) -> torch.Tensor:
    return model(x).square().mean()


def without_the_last(model: Stack, x: torch.Tensor) -> torch.Tensor:
    for layer in model.layers[:-1]:
        x = layer(x)
    model.layers[-1](x)
    return x.square().mean()


def without_one(model: Stack, x: torch.Tensor) -> torch.Tensor:
    for number, layer in enumerate(model.layers):
        y = layer(x)
        x = x if number == 1 else y
    return x.square().mean()


def detached(model: Stack, x: torch.Tensor) -> torch.Tensor:
    return model.layers[1](model.layers[0](x).detach()).square().mean()


def used_twice(model: Stack, x: torch.Tensor) -> torch.Tensor:
    for layer in model.layers:
        y = layer(x)
        x = y * torch.sigmoid(y)
    return x.square().mean() + y.sum()


def written_in_place(model: Stack, x: torch.Tensor) -> torch.Tensor:
    for layer in model.layers:
        x = layer(x)
        x[:2].mul_(2.0)
        x = x.view(2, 12).relu_().view(4, 6)
    return x.square().mean()


def after_inference(model: Stack, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        model(x)
    return plainly(model, x)


def aside_only(model: Stack, x: torch.Tensor) -> torch.Tensor:
    model(x)
    return sum((layer.aside.square().mean() for layer in model.layers), torch.zeros(()))


def aside_too(model: Stack, x: torch.Tensor) -> torch.Tensor:
    return plainly(model, x) + aside_only(model, x)


def one_aside(model: Stack, x: torch.Tensor) -> torch.Tensor:
    """No input of the layer needs a gradient."""
    model.layers[0](x.detach())
    return model.layers[0].aside.sum()


def unwrapped(model: Stack, x: torch.Tensor) -> torch.Tensor:
    for layer in model.layers:
        x = layer(x).value
    return x.square().mean()


def by_a_closure(model: Stack, x: torch.Tensor) -> torch.Tensor:
    """What a hook of a part of the unit has taken."""
    found: list[torch.Tensor] = []
    forward = model.layers[1].forward

    def keep(x: torch.Tensor) -> torch.Tensor:
        found.append(forward(x))
        return found[0] * 2

    model.layers[1].forward = keep
    model(x)
    model.layers[1].forward = forward
    return found[0].sum()


CASES: list[tuple[type[Layer], Loss]] = [
    (Layer, without_the_last),
    (Layer, without_one),
    (Layer, detached),
    (Layer, used_twice),
    (Affine, written_in_place),
    (Layer, after_inference),
    (Layer, by_a_closure),
    (Aside, aside_only),
    (Aside, aside_too),
    (Aside, one_aside),
    (Wrapped, unwrapped),
    (Transposing, aside_only),
    (Frozen, aside_only),
    (Partly, aside_only),
    (Partly, aside_too),
]


def make(kind: type[Layer]) -> Stack:
    torch.manual_seed(3)
    model = Stack(4)
    model.layers = nn.ModuleList(kind() for _ in range(4))
    return model


def make_input(number: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(10 * number + get_rank())
    x = torch.randn(4, 6, generator=generator, device="cpu")
    return x.to(torch.get_default_device()).requires_grad_()


def train(
    kind: type[Layer], loss: Loss, options: dict[str, Any]
) -> tuple[dict[str, torch.Tensor], list[torch.Tensor | None], list[str]]:
    """The model after three steps, the gradients of inputs, and the units that a backward
    pass has left in the middle of their own."""
    model = make(kind)
    optimizer = zo.SGD(model, lr=0.1, momentum=0.5, **options)
    inputs, left = [], []
    for step in range(3):
        for number in (2 * step, 2 * step + 1):
            x = make_input(number)
            found = loss(model, x)
            found.backward(retain_graph=number == 2)
            if number == 2:
                found.backward()
            inputs.append(x.grad)
            for unit in optimizer._sharding.units:
                if unit.is_in_backward or (unit.is_unsharded and not unit.is_kept):
                    left.append(unit.name)
        optimizer.step()
        assert not optimizer.step_was_skipped
    state = (
        optimizer.consolidate_model() if options["zero"] == 3 else dict(model.state_dict())
    )
    state = {name: value.clone() for name, value in state.items()}
    optimizer.close()
    return state, inputs, left


def compare(kind: type[Layer], loss: Loss, keep: bool | str) -> bool:
    torch._dynamo.reset()
    two, inputs_of_two, _ = train(kind, loss, {"zero": 2})
    options = {"zero": 3, "units": [Layer], "keep_after_forward": keep}
    three, inputs_of_three, left = train(kind, loss, options)
    assert not left
    for one, other in zip(inputs_of_two, inputs_of_three, strict=True):
        assert one is other is None or torch.equal(one, other)
    return bool(get_rank()) or all(torch.equal(two[name], three[name]) for name in two)


@pytest.mark.parametrize("keep", [False, "last", True])
@pytest.mark.parametrize("kind, loss", CASES)
def test_the_bits_of_stage_2(
    workers: Workers, kind: type[Layer], loss: Loss, keep: bool | str
) -> None:
    assert workers.run(compare, kind, loss, keep) == [True, True]
