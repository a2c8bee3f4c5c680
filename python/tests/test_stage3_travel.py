# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters of units of ZeRO stage 3 that travel in a narrower type."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from ranks import Workers
from test_stage3_hooks import Layer, Stack
from training import get_rank

import zero_opt.torch as zo
from zero_opt import ZeroOptError

LR = 0.1
STEPS = 3


def make() -> Stack:
    torch.manual_seed(3)
    return Stack()


def round_all(model: Stack) -> Stack:
    rounded = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in rounded.parameters():
            parameter.copy_(parameter.bfloat16())
    return rounded


def make_inputs(step: int) -> list[torch.Tensor]:
    """Of each rank."""
    generator = torch.Generator().manual_seed(step)
    inputs = (torch.randn(4, 6, generator=generator, device="cpu") for _ in range(2))
    return [x.to(torch.get_default_device()) for x in inputs]


def train(offload: bool | str) -> tuple[list[float], dict[str, torch.Tensor], bool]:
    """The losses of this rank, the parameters on rank 0, and whether the model has read
    rounded values."""
    model = make()
    optimizer = zo.SGD(
        model, lr=LR, zero=3, units=[Layer], gather_dtype=torch.bfloat16, offload=offload
    )
    are_rounded = True
    losses = []

    def check(layer: torch.nn.Module, *_: Any) -> None:
        nonlocal are_rounded
        for parameter in layer.parameters():
            are_rounded &= torch.equal(parameter, parameter.bfloat16().float())

    for layer in model.layers:
        layer.register_forward_pre_hook(check)
    for step in range(STEPS):
        loss = model(make_inputs(step)[get_rank()]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    whole = optimizer.consolidate_model()
    optimizer.close()
    return losses, whole, are_rounded


def train_plainly() -> tuple[list[list[float]], Stack]:
    """The losses of both ranks, and the model, with the gradients of a rounded copy."""
    model = make()
    losses: list[list[float]] = [[], []]
    for step in range(STEPS):
        rounded = round_all(model)
        for x, rank in zip(make_inputs(step), losses, strict=True):
            loss = rounded(x).square().mean()
            (loss / 2).backward()
            rank.append(loss.item())
        with torch.no_grad():
            for mine, other in zip(model.parameters(), rounded.parameters(), strict=True):
                mine -= LR * other.grad
    return losses, model


@pytest.mark.parametrize("offload", [False, "parameters"])
def test_model_reads_rounded_values_and_the_step_keeps_the_others(
    workers: Workers, offload: bool | str
) -> None:
    expected, model = train_plainly()
    for (losses, whole, are_rounded), plain in zip(
        workers.run(train, offload), expected, strict=True
    ):
        assert are_rounded
        assert losses == pytest.approx(plain, rel=1e-6)
        for name, value in whole.items():
            torch.testing.assert_close(
                value, model.state_dict()[name], rtol=1e-6, atol=1e-7
            )
            assert not torch.equal(value, value.bfloat16().float())


def train_alone() -> tuple[float, float]:
    model = make()
    x = make_inputs(0)[0]
    expected = model(x).square().mean().item()
    optimizer = zo.SGD(model, lr=LR, zero=3, units=[Layer], gather_dtype=torch.bfloat16)
    loss = model(x).square().mean().item()
    optimizer.close()
    return loss, expected


def test_rank_that_is_alone_rounds_nothing() -> None:
    loss, expected = train_alone()
    assert loss == expected


def freeze_a_layer() -> str:
    model = Stack()
    model.layers[1].weight.requires_grad_(False)
    with pytest.raises(ZeroOptError) as error:
        zo.SGD(model, lr=LR, zero=3, units=[Layer], gather_dtype=torch.bfloat16)
    return str(error.value)


def test_frozen_parameters_do_not_travel_rounded(workers: Workers) -> None:
    for message in workers.run(freeze_a_layer):
        assert message == (
            "gather_dtype is torch.bfloat16, and frozen parameter 'layers.1.weight' of a "
            "unit has dtype torch.float32: consolidate_model() could not give its values "
            "back; convert it to torch.bfloat16, or leave out gather_dtype"
        )
