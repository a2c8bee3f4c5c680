# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models, with what is hard for an optimizer: tied, frozen and unused parameters,
a parameter that only some steps use, scalars and empty parameters."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    """A layer that is used twice; an adapter that only some steps use."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 16)
        self.twice = nn.Linear(16, 16)
        self.adapter = nn.Linear(16, 16)
        self.unused = nn.Parameter(torch.randn(5))
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.empty = nn.Parameter(torch.zeros(0))
        self.frozen = nn.Parameter(torch.randn(16), requires_grad=False)
        self.last = nn.Linear(16, 3)
        self.uses_adapter = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(x) + self.frozen)
        x = torch.tanh(self.twice(torch.tanh(self.twice(x))))
        if self.uses_adapter:
            x = x + self.adapter(x)
        return self.last(x * self.scale)

    def compute_loss(self, generator: torch.Generator) -> torch.Tensor:
        dtype = self.first.weight.dtype
        x = torch.randn(6, 12, generator=generator).to(dtype)
        y = torch.randn(6, 3, generator=generator).to(dtype)
        return (self(x) - y).square().mean()


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, 2, width // 2).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """Two layers; the output layer is tied to the embedding; positions are frozen."""

    def __init__(self, width: int = 16, words: int = 29, length: int = 8) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(length, width)
        self.positions.weight.requires_grad_(False)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def compute_loss(self, generator: torch.Generator) -> torch.Tensor:
        tokens = torch.randint(29, (3, 9), generator=generator)
        logits = self(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def make_model(kind: str, dtype: torch.dtype = torch.float32, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    model: nn.Module = {"mlp": Mlp, "gpt": Gpt}[kind]()
    return model.to(dtype)
