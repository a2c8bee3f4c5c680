# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a backward pass of ZeRO stage 3 leaves: units that are gathered and not reduced,
graphs, and hooks of saved tensors."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from ranks import Workers
from test_stage3_hooks import Layer, Stack, compute_loss
from test_stage3_saved import aside_only, make, make_input, plainly

import zero_opt.torch as zo
from zero_opt import ZeroOptError


class Adding(Layer):
    """Autograd saves nothing for this loss, and no output shows it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.aside = x + self.bias
        return x * 2


class Functional(Layer):
    """torch.func refuses hooks of saved tensors."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gradient = torch.func.grad(lambda y: y.square().sum())(x.detach())
        return super().forward(x) + gradient


class Interrupted(Exception):
    pass


def interrupt(*_: Any) -> None:
    raise Interrupted


def fail_in_backward(model: Stack, optimizer: zo.SGD) -> None:
    handle = model.layers[1].weight.register_hook(interrupt)
    with pytest.raises(Interrupted):
        plainly(model, make_input(0)).backward()
    handle.remove()


def step_after_a_failure(model: Stack, optimizer: zo.SGD) -> None:
    fail_in_backward(model, optimizer)
    optimizer.step()


def step_after_a_failure_and_a_pass(model: Stack, optimizer: zo.SGD) -> None:
    fail_in_backward(model, optimizer)
    for parameter in model.parameters():
        parameter.grad = None
    plainly(model, make_input(0)).backward()
    optimizer.step()


def step_within_a_pass(model: Stack, optimizer: zo.SGD) -> None:
    model.layers[1].weight.register_hook(lambda _: optimizer.step())
    plainly(model, make_input(0)).backward()


def step_between_forward_and_backward(model: Stack, optimizer: zo.SGD) -> None:
    loss = plainly(model, make_input(0))
    plainly(model, make_input(1)).backward()
    optimizer.step()
    loss.backward()


def write_what_is_saved(model: Stack, optimizer: zo.SGD) -> None:
    y = model.layers[0](make_input(0))
    with torch.no_grad():
        y.add_(1.0)
    y.sum().backward()


def read_the_graph(model: Stack, optimizer: zo.SGD) -> None:
    model.layers[0].forward = lambda x: x @ model.layers[0].weight
    model.layers[0](make_input(0)).grad_fn._saved_mat2.sum()


def add_aside(model: Stack, optimizer: zo.SGD) -> None:
    aside_only(model, make_input(0)).backward()


def attempt(kind: type[Layer], action: Callable[[Stack, zo.SGD], None]) -> str:
    """The error that |action| raises."""
    model = make(kind)
    optimizer = zo.SGD(model, lr=0.1, zero=3, units=[Layer])
    message = "nothing was raised"
    try:
        action(model, optimizer)
    except RuntimeError as error:
        message = str(error)
    optimizer.close()
    return message


CUT_OFF = (
    "step() behind a backward pass that did not end: unit 'layers.1' was left gathered, "
    "and its gradients were not reduced; call step() after backward(), and zero_grad() "
    "after an exception in backward()"
)


@pytest.mark.parametrize(
    "kind, action, message",
    [
        (Layer, step_after_a_failure, CUT_OFF),
        (Layer, step_after_a_failure_and_a_pass, CUT_OFF),
        (Layer, step_within_a_pass, CUT_OFF),
        (
            Layer,
            step_between_forward_and_backward,
            "parameter 'layers.3.weight' of unit 'layers.3' has changed since the forward "
            "pass that this backward pass belongs to; make the forward pass again after "
            "step()",
        ),
        (
            Layer,
            write_what_is_saved,
            "one of the variables needed for gradient computation has been modified by an "
            "inplace operation: a tensor [4, 6] that unit 'layers.0' has saved is at "
            "version 1; expected version 0 instead",
        ),
        (
            Layer,
            read_the_graph,
            "parameter 'layers.0.weight' is read from the graph of unit 'layers.0', which "
            "is sharded; read it in a backward pass",
        ),
        (
            Adding,
            add_aside,
            "the gradient of parameter 'layers.3.bias' arrives while its unit 'layers.3' "
            "is sharded: the parameter was used outside of the unit's forward(), or the "
            "loss uses something else than the unit's outputs; make the module that does "
            "this a unit, or leave this one out",
        ),
    ],
)
def test_refused(
    workers: Workers,
    kind: type[Layer],
    action: Callable[[Stack, zo.SGD], None],
    message: str,
) -> None:
    assert workers.run(attempt, kind, action) == [message] * 2


def go_on_after_a_failure() -> bool:
    states = []
    for fails in (False, True):
        model = make(Layer)
        optimizer = zo.SGD(model, lr=0.1, zero=3, units=[Layer])
        if fails:
            with pytest.raises(ZeroOptError, match="'layers.1' was left gathered"):
                step_after_a_failure(model, optimizer)
            optimizer.zero_grad()
        for number in range(2):
            plainly(model, make_input(number)).backward()
            optimizer.step()
        states.append(optimizer.consolidate_model())
        optimizer.close()
    return all(torch.equal(states[0][name], value) for name, value in states[1].items())


def test_zero_grad_drops_a_pass_that_did_not_end(workers: Workers) -> None:
    assert workers.run(go_on_after_a_failure) == [True, True]


def call_torch_func() -> tuple[str, bool]:
    """What a user reads, and whether the remedy helps."""
    model = make(Functional)
    whole = copy.deepcopy(model)
    optimizer = zo.SGD(model, lr=0.1, zero=3, units=[Layer])
    with warnings.catch_warnings(record=True) as found, pytest.raises(RuntimeError):
        warnings.simplefilter("always")
        model(make_input(0))
    xs = [make_input(0), make_input(0)]
    with torch.autograd.graph.disable_saved_tensors_hooks(""):
        loss = plainly(model, xs[0])
    loss.backward()
    optimizer.step()
    optimizer.close()
    plainly(whole, xs[1]).backward()
    return str(found[0].message), torch.equal(xs[0].grad, xs[1].grad)


def test_a_unit_that_calls_torch_func(workers: Workers) -> None:
    message = (
        "unit 'layers.0' calls torch.func.grad() or the like, which refuses the hooks of "
        "units; call the model within torch.autograd.graph.disable_saved_tensors_hooks('')"
    )
    for text, is_right in workers.run(call_torch_func):
        assert text == message and is_right


def count_hooks() -> tuple[int, int, list[Any]]:
    """What the hooks of others are asked, without units and with them; and the hooks that
    an interrupt leaves."""
    counts = []
    for zero in (2, 3):
        model = make(Layer)
        units = {"units": [Layer]} if zero == 3 else {}
        optimizer = zo.SGD(model, lr=0.1, zero=zero, **units)
        asked: list[int] = []

        def pack(tensor: torch.Tensor, asked: list[int] = asked) -> torch.Tensor:
            asked.append(1)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss = plainly(model, make_input(0))
        loss.backward()
        counts.append(len(asked))

        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        handle = model.layers[1].register_forward_pre_hook(stop)
        with pytest.raises(KeyboardInterrupt):
            compute_loss(model, 0, True)
        handle.remove()
        optimizer.zero_grad()
        optimizer.close()
    top: Any = torch._C._autograd._top_saved_tensors_default_hooks
    return counts[0], counts[1], [top(False)]


def test_hooks_of_others(workers: Workers) -> None:
    for without, with_units, left in workers.run(count_hooks):
        assert without == with_units > 0
        assert left == [None]


def count_living() -> list[int]:
    """How many outputs of units live on, with a graph and without it, if no backward pass
    runs: a graph that keeps itself would keep all that it has saved."""
    model = make(Layer)
    optimizer = zo.SGD(model, lr=0.1, zero=3, units=[Layer])
    outputs: list[Any] = []
    for layer in model.layers:
        layer.register_forward_hook(lambda _, args, y: outputs.append(weakref.ref(y)))
    gc.collect()
    gc.disable()
    counts = []
    loss = [plainly(model, make_input(0))]
    counts.append(len(outputs))
    loss.clear()
    counts.append(sum(output() is not None for output in outputs))
    gc.enable()
    optimizer.close()
    return counts


def test_a_graph_that_is_dropped_keeps_nothing(workers: Workers) -> None:
    assert workers.run(count_living) == [[4, 0]] * 2
