# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two optimizers that live at once, as of a generator and a discriminator.

Each has a process group of its own between the same ranks."""

from __future__ import annotations

import hashlib

import torch
from ranks import Workers
from torch import nn
from training import get_rank

import zero_opt.torch as zo

STEPS = 4


def make(seed: int, stage: int) -> tuple[nn.Module, zo.Optimizer]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    return model, zo.AdamW(model, lr=0.01, zero=stage, max_norm=1.0)


def backward(model: nn.Module, step: int) -> None:
    generator = torch.Generator().manual_seed(100 * step + get_rank())
    model(torch.randn(4, 5, generator=generator)).square().mean().backward()


def hash_of(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def train_alone(seed: int, stage: int) -> str:
    model, optimizer = make(seed, stage)
    for step in range(STEPS):
        backward(model, step)
        optimizer.step()
    return hash_of(model)


def train_in_turn(stages: tuple[int, int]) -> tuple[str, str]:
    first, of_first = make(1, stages[0])
    second, of_second = make(2, stages[1])
    for step in range(STEPS):
        backward(first, step)
        backward(second, step)  # before the first has made its step
        of_second.step()
        of_first.step()
    return hash_of(first), hash_of(second)


def test_two_optimizers_train_as_each_alone(workers: Workers) -> None:
    first = workers.run(train_alone, 1, 1)
    second = workers.run(train_alone, 2, 2)
    assert first[0] == first[1] != second[0]
    assert workers.run(train_in_turn, (1, 2)) == list(zip(first, second, strict=True))
