# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of the universal checkpoints that DeepSpeed has written."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(7, 5)
        self.norm = nn.LayerNorm(5)
        self.last = nn.Linear(5, 3)
        self.scale = nn.Parameter(torch.ones(1))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.norm(self.first(x)).relu()
        result: torch.Tensor = self.last(hidden) * self.scale + self.frozen
        return result


def make_model(dtype: torch.dtype, seed: int) -> Net:
    torch.manual_seed(seed)
    return Net().to(dtype)


def list_groups(model: nn.Module) -> list[dict[str, Any]]:
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return [
        {"params": [p for _, p in named if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for _, p in named if p.ndim <= 1], "weight_decay": 0.0},
    ]


def compute_loss(model: Any, step: int, rank: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2 * step + rank)
    x = torch.randn(4, 7, generator=generator)
    loss: torch.Tensor = model(x.to(next(model.parameters()).dtype)).float().square().mean()
    return loss
