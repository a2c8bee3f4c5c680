# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Backward passes within a backward pass, as re-entrant checkpointing makes them."""

from __future__ import annotations

import pathlib

import pytest
import torch
from ranks import Workers
from test_hooks import make_layers, plain
from torch import nn
from torch.utils.checkpoint import checkpoint

import zero_opt.torch as zo


class Segments(nn.Module):
    """Layers in checkpointed segments, between layers in none."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first = nn.Linear(6, 6)
        self.segments = nn.ModuleList(make_layers() for _ in range(3))
        self.last = nn.Linear(6, 6)
        self.has_last = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for segment in self.segments:
            x = checkpoint(segment, x, use_reentrant=True)
        return self.last(x) if self.has_last else x


def train_segments(zero: int, has_last: bool) -> tuple[int, float]:
    """How many passes the step has for two backward passes, and the largest difference
    from torch."""
    model, other = Segments(), Segments()
    model.has_last = other.has_last = has_last
    optimizer = zo.SGD(model, lr=0.5, zero=zero)
    reference = torch.optim.SGD(other.parameters(), lr=0.5)
    for _ in range(2):
        for micro in range(2):
            x = torch.full((4, 6), 0.1 + micro)
            plain(other, x).backward()
            plain(model, x).backward()
        passes = optimizer._delivery.passes
        optimizer.step()
        reference.step()
        reference.zero_grad()
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    difference = max((p - q).abs().max().item() for p, q in pairs)
    optimizer.close()
    return passes, difference


@pytest.mark.parametrize("has_last", [True, False])
def test_reentrant_checkpointing_is_one_pass(workers: Workers, has_last: bool) -> None:
    found = [train_segments(1, has_last)]
    for zero in (0, 1, 2):
        found += workers.run(train_segments, zero, has_last)
    for passes, difference in found:
        assert passes == 2
        assert difference < 1e-6


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.checkpointed = nn.Linear(4, 4)
        self.plain = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, micro: int) -> torch.Tensor:
        if micro:
            return self.plain(x)
        return checkpoint(self.checkpointed, x.requires_grad_(), use_reentrant=True)


# The outer pass delivers nothing behind the checkpointed segment, so its end is unknown.
def test_checkpoint_files_behind_a_pass_of_unknown_end(tmp_path: pathlib.Path) -> None:
    ends = []
    for saves in (False, True):
        model = Branches()
        optimizer = zo.SGD(model, lr=0.5)
        for micro in range(2):
            model(torch.ones(2, 4), micro).sum().backward()
            if saves:
                optimizer.save_checkpoint(tmp_path)
        optimizer.step()
        ends.append([p.detach().clone() for p in model.parameters()])
        optimizer.close()
    assert all(map(torch.equal, *ends))
