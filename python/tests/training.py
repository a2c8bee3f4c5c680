# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a model on one rank, and records what reached the optimizer and what it did."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
import torch.distributed as dist
from models import make_model
from torch import nn

import zero_opt.torch as zo
from zero_opt.torch import _pieces


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    dtype: torch.dtype
    accumulation: int
    zero: int
    steps: int = 4
    max_norm: float | None = 0.5
    # Whether rank 0 alone uses the adapter.
    is_uneven: bool = False
    one_backward: bool = False
    offload: bool = False
    accumulate: str = "in-place"


@dataclasses.dataclass
class Recorded:
    """All tensors by the name of the parameter."""

    initial: dict[str, torch.Tensor]
    # For each step and backward pass, the gradients that arrived.
    gradients: list[list[dict[str, torch.Tensor]]]
    # After each step.
    parameters: list[dict[str, torch.Tensor]]
    master_weights: list[dict[str, list[tuple[int, torch.Tensor]]]]
    norms: list[float]
    rates: list[list[float]]
    frozen_changed: bool


def list_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Matrices with weight decay, and all others without, with betas of their own."""
    named = list(model.named_parameters())
    return [
        {"params": [n for n in named if n[1].ndim > 1], "weight_decay": 0.1, "lr": 3e-3},
        {"params": [n for n in named if n[1].ndim <= 1], "weight_decay": 0.0, **OTHERS},
    ]


OTHERS = {"lr": 1e-3, "betas": (0.8, 0.95), "eps": 1e-7}


def get_rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def _copy(model: nn.Module) -> dict[str, torch.Tensor]:
    return {n: p.detach().clone() for n, p in model.named_parameters()}


def list_pieces(tensor: Any) -> list[tuple[int, torch.Tensor]]:
    """The pieces of this rank, each with its first element in the whole tensor."""
    tensor = _pieces.unprotect(tensor)  # of a torch that knows no pieces
    begins = [begin for (begin,) in getattr(tensor, "global_offsets", [])]
    pieces = tensor.split([size for (size,) in tensor.local_sizes]) if begins else []
    return list(zip(begins, pieces, strict=True))


def train(case: Case) -> Recorded:
    # Rank 0's parameters count, whatever the others begin with.
    model = make_model(case.model, case.dtype, seed=get_rank())
    groups = list_groups(model)
    optimizer = zo.AdamW(
        groups,
        zero=case.zero,
        max_norm=case.max_norm,
        one_backward=case.one_backward,
        offload=case.offload,
        accumulate=case.accumulate,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    record = Recorded(_copy(model), [], [], [], [], [], False)
    arrived: list[dict[str, torch.Tensor]] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            parameter.register_hook(
                lambda gradient, name=name: arrived[-1].__setitem__(name, gradient.clone())
            )
    generator = torch.Generator().manual_seed(7 + get_rank())
    for step in range(case.steps):
        model.uses_adapter = step % 2 == 1 and not (case.is_uneven and get_rank())
        arrived.clear()
        for _ in range(case.accumulation):
            arrived.append({})
            (model.compute_loss(generator) / case.accumulation).backward()
        record.gradients.append(list(arrived))
        record.rates.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        schedule.step()
        assert not optimizer.step_was_skipped
        record.norms.append(optimizer.grad_norm)
        record.parameters.append(_copy(model))
        record.master_weights.append(
            {
                name: list_pieces(optimizer.state[parameter]["master"])
                for name, parameter in model.named_parameters()
                if parameter.requires_grad and parameter.dtype is torch.bfloat16
            }
        )
    record.frozen_changed = any(
        not torch.equal(record.initial[name], parameter)
        for name, parameter in model.named_parameters()
        if not parameter.requires_grad
    )
    optimizer.close()
    return record
