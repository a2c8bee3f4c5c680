# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When units of ZeRO stage 3 are gathered, in models of several forms."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
from ranks import Workers
from torch import nn
from torch.utils.checkpoint import checkpoint
from training import get_rank

import zero_opt.torch as zo
from zero_opt import ZeroOptError


class Layer(nn.Linear):
    def __init__(self) -> None:
        super().__init__(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(super().forward(x))


class Stack(nn.Module):
    def __init__(self, layers: int = 5) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Skipping(Stack):
    """Each forward pass leaves other layers out, the same ones on all ranks."""

    passes = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        for number, layer in enumerate(self.layers):
            if (number + self.passes) % 3:
                x = layer(x)
        return x


class Collecting(Stack):
    """Layers write to a list and a dict that they get, as for losses besides."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        losses: list[torch.Tensor] = []
        seen = {"first": x}
        for layer in self.collectors:
            x = layer(x, losses, seen=seen)
        assert len(losses) == 3 and seen["first"].sum() == 0
        return x + sum(losses)

    def __init__(self) -> None:
        super().__init__(0)
        self.collectors = nn.ModuleList(Collector() for _ in range(3))


class Collector(Layer):
    def forward(  # type: ignore[override]
        self, x: torch.Tensor, losses: list[torch.Tensor], seen: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        y = super().forward(x)
        losses.append(y.square().mean())
        seen["first"] = x * 0
        return y


class Hooked(Stack):
    """A hook that was registered before reads the parameters."""

    def __init__(self) -> None:
        super().__init__(3)

        def double(layer: nn.Module, args: Any) -> Any:
            return (args[0] * (1 + layer.bias.detach().square().sum()),)

        for layer in self.layers:
            layer.register_forward_pre_hook(double)


class Shared(Stack):
    """One layer is used again, as the layers of ALBERT are."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers[2](super().forward(x))


class SharedSegments(Stack):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for number in (0, 1, 2, 1):
            x = checkpoint(self.layers[number], x, use_reentrant=True)
        return x


class Pairs(Stack):
    """Each checkpointed segment has two units."""

    def __init__(self) -> None:
        super().__init__(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in (0, 2, 4):
            pair = nn.Sequential(self.layers[i], self.layers[i + 1])
            x = checkpoint(pair, x, use_reentrant=False)
        return x


class WithinUnit(nn.Module):
    """A unit that checkpoints its parts, and writes its output in place."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(6, 6) for _ in range(2))

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, int]:
        y = checkpoint(self.parts[0], x, use_reentrant=bool(x.requires_grad))
        return self.parts[1](y) * scale + x, 3


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(WithinUnit() for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x, _ = layer(x, scale=torch.full((), 0.5))
            x[:1].mul_(2.0)
            x.relu_()
        return x


class Compiled(Stack):
    """What a unit computes is compiled, and so is what the model does with the units."""

    def __init__(self) -> None:
        super().__init__()
        for layer in self.layers:
            layer.forward = torch.compile(layer.forward, backend="aot_eager")


class CompiledModel(Stack):
    def __init__(self) -> None:
        super().__init__()
        self.forward = torch.compile(super().forward, backend="aot_eager")


class Branches(nn.Module):
    """Units whose inputs need no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.last = Layer()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers[0](x) + self.layers[1](2 * x))


class Tied(Stack):
    """Two units share a weight, and the model uses a weight of a unit."""

    def __init__(self) -> None:
        super().__init__()
        self.layers[1].weight = self.layers[3].weight
        self.head = self.layers[4].weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) @ self.head


class Nested(nn.Module):
    """Units in a unit that has parameters, too."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList(Layer() for _ in range(4))
        self.outer = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.inner:
            x = layer(x)
        return self.outer(x)


def compute_loss(model: nn.Module, number: int, needs_gradient: bool) -> torch.Tensor:
    generator = torch.Generator().manual_seed(10 * number + get_rank())
    x = torch.randn(4, 6, generator=generator).requires_grad_(needs_gradient)
    return model(x).square().mean()


Backward = Callable[[nn.Module, int], None]


def plainly(model: nn.Module, number: int) -> None:
    compute_loss(model, number, True).backward()
    compute_loss(model, number + 1, False).backward()


def twice_through_a_graph(model: nn.Module, number: int) -> None:
    loss = compute_loss(model, number, True)
    loss.backward(retain_graph=True)
    loss.backward()


def two_graphs(model: nn.Module, number: int) -> None:
    losses = [compute_loss(model, number + i, True) for i in range(2)]
    losses[0].backward()
    losses[1].backward()


def one_pass_of_two_graphs(model: nn.Module, number: int) -> None:
    (compute_loss(model, number, True) + compute_loss(model, number + 1, True)).backward()


def after_errors(model: nn.Module, number: int) -> None:
    for is_forward in (True, False):
        with pytest.raises(ZeroDivisionError):
            fail_once(model, number, is_forward)
    plainly(model, number)


def after_too_many_units(model: nn.Module, number: int) -> None:
    """An error in the middle of a backward pass, of which nothing stays."""
    if model.layers[0].weight.isnan().all():
        x = torch.randn(4, 6, requires_grad=True)
        with pytest.raises(ZeroOptError, match="there is memory for two units"):
            checkpoint(
                nn.Sequential(*model.layers), x, use_reentrant=False
            ).sum().backward()
        for parameter in model.parameters():
            parameter.grad = None


def after_an_interrupt(model: nn.Module, number: int) -> None:
    """Python's Ctrl-C is no Exception, and torch calls no hook of a module after it."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    handle = model.layers[1].register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        compute_loss(model, number, True)
    handle.remove()


def inferring(model: nn.Module, number: int) -> None:
    with torch.inference_mode():
        compute_loss(model, number, False)
    plainly(model, number)


def fail_once(model: nn.Module, number: int, is_forward: bool) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    layer = model.layers[1]
    if is_forward:
        handle = layer.register_forward_pre_hook(fail)
    else:
        handle = layer.weight.register_hook(fail)
    try:
        compute_loss(model, number, True).backward()
    finally:
        handle.remove()
        for parameter in model.parameters():
            parameter.grad = None


UNITS: dict[type[nn.Module], list[Any]] = {Parts: [WithinUnit], Nested: [Layer, Nested]}


def compare(kind: type[nn.Module], backward: Backward, sharded: int) -> bool:
    """Whether three steps have the bits of stage 2. |sharded| of the parameters are."""
    models = []
    for zero in (2, 3):
        torch.manual_seed(3)
        model = kind()
        units = {"units": UNITS.get(kind, [Layer])} if zero == 3 else {}
        optimizer = zo.SGD(model, lr=0.1, momentum=0.5, zero=zero, **units)
        if zero == 3:
            shards = [p for p in model.parameters() if p.isnan().all()]
            assert len(shards) == sharded
        for step in range(3):
            backward(model, 4 * step)
            if backward in (after_errors, after_too_many_units, after_an_interrupt):
                optimizer.zero_grad()
                plainly(model, 4 * step)
            optimizer.step()
        state = optimizer.consolidate_model() if zero == 3 else model.state_dict()
        models.append(copy.deepcopy(state))
        optimizer.close()
    two, three = models
    return bool(get_rank()) or all(torch.equal(two[name], three[name]) for name in two)


@pytest.mark.parametrize(
    "kind, backward, sharded",
    [
        (Stack, plainly, 10),
        (Stack, twice_through_a_graph, 10),
        (Stack, two_graphs, 10),
        (Stack, one_pass_of_two_graphs, 10),
        (Stack, after_errors, 10),
        (Stack, after_too_many_units, 10),
        (Stack, after_an_interrupt, 10),
        (Stack, inferring, 10),
        (Compiled, plainly, 10),
        (CompiledModel, plainly, 10),
        (Skipping, plainly, 10),
        (Collecting, plainly, 6),
        (Hooked, plainly, 6),
        (Shared, plainly, 10),
        (SharedSegments, plainly, 10),
        (Pairs, plainly, 12),
        (Parts, plainly, 16),
        (Branches, plainly, 6),
        (Tied, plainly, 7),
        (Nested, plainly, 8),
    ],
)
def test_the_bits_of_stage_2(
    workers: Workers, kind: type[nn.Module], backward: Backward, sharded: int
) -> None:
    assert workers.run(compare, kind, backward, sharded) == [True, True]


def count_passes(kind: type[nn.Module]) -> tuple[int, bool]:
    """How many passes the step has for two backward passes, and whether all units are
    released when they have ended."""
    torch.manual_seed(3)
    model = kind()
    optimizer = zo.SGD(model, zero=3, units=[Layer])
    plainly(model, 0)
    found = optimizer._delivery.passes, all(p.isnan().all() for p in model.parameters())
    optimizer.step()
    optimizer.close()
    return found


@pytest.mark.parametrize("kind", [Stack, Branches])
def test_a_backward_pass_is_one_of_the_step(
    workers: Workers, kind: type[nn.Module]
) -> None:
    assert workers.run(count_passes, kind) == [(2, True)] * 2


def record_gathers(keep: bool | str = False, unit_order: str = "calls") -> list[str]:
    """The units that two steps unshard (u) and gather ahead (p), in order."""
    model = Stack(3)
    optimizer = zo.SGD(
        model, zero=3, units=[Layer], keep_after_forward=keep, unit_order=unit_order
    )
    step = optimizer._step
    names = {u.number: u.name[-1] for u in optimizer._sharding.units}
    found: list[str] = []
    prefetch, unshard = step.prefetch, step.unshard

    def record_prefetch(unit: int) -> None:
        found.append(f"p{names[unit]}")
        prefetch(unit)

    def record_use(unit: int, stream: int | None) -> None:
        found.append(f"u{names[unit]}")
        unshard(unit, stream)

    with (
        mock.patch.object(step, "prefetch", record_prefetch),
        mock.patch.object(step, "unshard", record_use),
    ):
        for number in range(2):
            compute_loss(model, number, True).backward()
            optimizer.step()
    optimizer.close()
    return found


def test_the_next_unit_is_gathered_ahead(workers: Workers) -> None:
    backward = "u2 p1 u1 p0 u0"
    expected = f"u0 u1 u2 {backward} u0 p1 u1 p2 u2 {backward}".split()
    assert workers.run(record_gathers) == [expected] * 2


def test_units_are_kept_from_forward_to_backward(workers: Workers) -> None:
    """Of L units 2L - 1 and L are gathered for each backward pass."""
    for keep, backward in (("last", "p1 u1 p0 u0"), (True, "p1 p0")):
        expected = f"u0 u1 u2 {backward} u0 p1 u1 p2 u2 {backward}".split()
        assert workers.run(record_gathers, keep) == [expected] * 2


def test_the_library_gathers_ahead_in_a_declared_order(workers: Workers) -> None:
    """The package asks for the unit before one that is kept only."""
    for keep, backward in ((False, "u2 u1 u0"), ("last", "p1 u1 u0"), (True, "p1 p0")):
        expected = f"u0 u1 u2 {backward} u0 u1 u2 {backward}".split()
        assert workers.run(record_gathers, keep, "declared") == [expected] * 2


class Turned(Stack):
    order = (0, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number in self.order:
            x = self.layers[number](x)
        return x


def depart_from_order(order: tuple[int, ...], catch: bool) -> list[str]:
    """The errors of three steps, of which the second one uses units in |order|."""
    torch.manual_seed(3)
    model = Turned(3)
    optimizer = zo.SGD(model, zero=3, units=[Layer], unit_order="declared")
    found = []
    for number in range(3):
        model.order = order if number == 1 else (0, 1, 2)
        if catch:
            model.eval()
        try:
            with torch.set_grad_enabled(not catch):
                loss = compute_loss(model, number, True)
            if not catch:
                loss.backward()
                optimizer.step()
            found.append("ok")
        except ZeroOptError as error:
            found.append(str(error))
    optimizer.close()
    return found


@pytest.mark.parametrize("is_inference", [False, True])
@pytest.mark.parametrize(
    "order, unit, expected",
    [
        ((0, 2, 1), "2", "'layers.1' follows 'layers.0'"),
        ((0, 1, 1, 2), "1", "'layers.2' follows 'layers.1'"),
        ((1, 2), "1", "'layers.0' or 'layers.2' is first"),
        ((0, 1), "1", "'layers.2' follows 'layers.1'"),
    ],
)
def test_units_out_of_the_declared_order(
    workers: Workers,
    order: tuple[int, ...],
    unit: str,
    expected: str,
    is_inference: bool,
) -> None:
    """The next step goes on."""
    message = (
        f"unshard of 'layers.{unit}': {expected} in the order that step 'train' declares; "
        "unshard that, or compile the step without --unit-order; unit_order='declared' is "
        "the order of model.modules(), so leave it out if the model uses its units in "
        "another one"
    )
    if is_inference and order == (0, 1):
        message = "ok"  # a pass that the caller gives up
    for found in workers.run(depart_from_order, order, is_inference):
        assert found == ["ok", message, "ok"]


class Broken(Stack):
    """The backward pass of a layer may fail."""

    fails_at = -1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if number == self.fails_at:
                x.register_hook(_fail)
        return x


def _fail(_: torch.Tensor) -> None:
    raise ValueError("failed on purpose")


def train_after_a_failure(unit_order: str) -> list[bool]:
    """Whether a model trains on as another one that had no failure, for a failure in each
    layer."""
    found = []
    for fails_at in range(3):
        torch.manual_seed(3)
        model = Broken(3)
        twin = copy.deepcopy(model)
        both = [
            zo.SGD(one, lr=0.1, zero=3, units=[Layer], unit_order=unit_order)
            for one in (model, twin)
        ]
        model.fails_at = fails_at
        with pytest.raises(ValueError, match="failed on purpose"):
            compute_loss(model, 0, True).backward()
        model.fails_at = -1
        compute_loss(model, 1, True)  # and no backward pass
        both[0].zero_grad()
        for number in range(2, 4):
            for one, optimizer in zip((model, twin), both, strict=True):
                compute_loss(one, number, True).backward()
                optimizer.step()
        wholes = [optimizer.consolidate_model() for optimizer in both]
        found.append(
            all(torch.equal(value, wholes[1][name]) for name, value in wholes[0].items())
        )
        for optimizer in both:
            optimizer.close()
    return found


@pytest.mark.parametrize("unit_order", ["calls", "declared"])
def test_training_goes_on_after_an_exception(workers: Workers, unit_order: str) -> None:
    assert workers.run(train_after_a_failure, unit_order) == [[True] * 3] * 2
