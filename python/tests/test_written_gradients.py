# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that a script writes, and hooks that wait for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from ranks import Workers
from test_refused import make, step_once

import zero_opt.torch as zo
from zero_opt import ZeroOptError


def test_a_hook_that_takes_gradients() -> None:
    model = make()
    model.weight.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None))
    optimizer = zo.SGD(model)
    message = "the gradient of parameter 'weight' was taken by another hook; remove that"
    with pytest.raises(ZeroOptError, match=message):
        model(torch.ones(1, 3)).sum().backward()
    del optimizer


def test_a_grad_besides_the_delivered_one() -> None:
    model = make()
    optimizer = zo.SGD(model)
    model(torch.ones(1, 3)).sum().backward()
    model.weight.grad = torch.ones(2, 3)
    with pytest.raises(ZeroOptError, match="parameter 'weight' has a .grad besides the gr"):
        optimizer.step()
    optimizer.zero_grad()
    step_once(model, optimizer)


def test_a_grad_that_is_written_between_backward_passes() -> None:
    """torch's sum would begin anew there."""
    model = make()
    optimizer = zo.SGD(model)
    model(torch.ones(1, 3)).sum().backward()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    with pytest.raises(ZeroOptError, match="has a .grad besides the gradient"):
        model(torch.ones(1, 3)).sum().backward()
    for parameter in model.parameters():
        parameter.grad = None
    optimizer.zero_grad()
    step_once(model, optimizer)


def test_a_hook_that_is_registered_too_late() -> None:
    model = make()
    optimizer = zo.SGD(model)
    seen: list[torch.Tensor | None] = []
    handle = model.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad))
    with pytest.raises(ZeroOptError) as caught:
        model(torch.ones(1, 3)).sum().backward()
    assert str(caught.value) == (
        "parameter 'weight' has a hook of register_post_accumulate_grad_hook() that was "
        "registered after the optimizer was created, and would find no .grad; register it "
        "before, or use register_hook()"
    )
    handle.remove()
    step_once(model, optimizer)


def test_a_hook_that_is_registered_before_the_optimizer() -> None:
    model = make()

    def clear(parameter: Any) -> None:
        parameter.grad.zero_()

    model.weight.register_post_accumulate_grad_hook(clear)
    before = model.weight.clone()
    step_once(model, zo.SGD(model))
    assert torch.equal(model.weight, before)


@pytest.mark.parametrize(
    "refuses",
    [
        test_a_hook_that_takes_gradients,
        test_a_grad_besides_the_delivered_one,
        test_a_grad_that_is_written_between_backward_passes,
        test_a_hook_that_is_registered_too_late,
    ],
)
def test_on_two_ranks(workers: Workers, refuses: Callable[[], None]) -> None:
    """Each rank refuses it by itself, and none waits for the other."""
    workers.run(refuses)
