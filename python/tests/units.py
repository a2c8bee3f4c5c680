# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with units of ZeRO stage 3, and their training at stages 2 and 3."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from models import Block
from torch import nn
from torch.utils.checkpoint import checkpoint
from training import get_rank, list_groups

import zero_opt.torch as zo


class Layer(nn.Module):
    """A block with frozen parts, of which a backward pass reads the matrix, a part that no
    step uses, and one that some steps use."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.block = Block(width)
        self.frozen = nn.Parameter(torch.randn(width), requires_grad=False)
        self.base = nn.Linear(width, width, bias=False).requires_grad_(False)
        self.unused = nn.Parameter(torch.randn(1))
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.adapter = nn.Linear(width, width)
        self.uses_adapter = False

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.base(self.block(x)) + self.frozen
        if self.uses_adapter:
            x = x + self.adapter(x)
        return {"hidden": x * self.scale}


class Deep(nn.Module):
    """Four layers; the output layer is tied to the embedding."""

    def __init__(self, checkpointing: str = "", width: int = 16) -> None:
        super().__init__()
        self.words = nn.Embedding(29, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(4))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 29, bias=False)
        self.head.weight = self.words.weight
        self.checkpointing = checkpointing

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens)
        for layer in self.layers:
            if self.checkpointing:
                is_reentrant = self.checkpointing == "re-entrant"
                x = checkpoint(layer, x, use_reentrant=is_reentrant)["hidden"]
            else:
                x = layer(x)["hidden"]
        return self.head(self.norm(x))

    def compute_loss(self, generator: torch.Generator) -> torch.Tensor:
        tokens = torch.randint(29, (3, 9), generator=generator)
        tokens = tokens.to(self.words.weight.device)
        logits = self(tokens[:, :-1])
        return nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), tokens[:, 1:].flatten()
        )


@dataclasses.dataclass(frozen=True)
class Training:
    dtype: torch.dtype = torch.float32
    accumulation: int = 1
    checkpointing: str = ""
    max_norm: float | None = 0.5
    offload: bool | str = False
    keep: bool | str = False
    unit_order: str = "calls"
    prefetch: int = 1
    reduce: str = "backward"
    whole_below: int = 0
    evaluates: bool = False
    # Whether rank 0 alone uses the adapters.
    is_uneven: bool = False
    loss_scale: str | None = None
    # A layer without trained parameters.
    frozen_layer: int | None = None
    words_are_frozen: bool = False
    # What torch.compile makes of each layer.
    backend: str = ""
    width: int = 16
    device: str = "cpu"


@dataclasses.dataclass
class Result:
    losses: list[float]
    norms: list[float]
    model: dict[str, torch.Tensor]  # on rank 0


def make_deep(training: Training, seed: int = 0) -> Deep:
    torch.manual_seed(seed + get_rank())
    model = Deep(training.checkpointing, training.width)
    if training.frozen_layer is not None:
        model.layers[training.frozen_layer].requires_grad_(False)
    model.words.requires_grad_(not training.words_are_frozen)
    if training.backend:
        for layer in model.layers:
            layer.compile(backend=training.backend)
    return model.to(training.device, training.dtype)


def make_optimizer(model: Deep, zero: int, **options: Any) -> zo.AdamW:
    if zero == 3:
        options["units"] = [Layer]
    return zo.AdamW(list_groups(model), model=model, zero=zero, **options)


def run_steps(
    model: Deep, optimizer: zo.AdamW, training: Training, steps: range
) -> tuple[list[float], list[float]]:
    losses, norms = [], []
    for step in steps:
        generator = torch.Generator().manual_seed(100 * step + get_rank())
        for layer in model.layers[::2]:
            layer.uses_adapter = step % 2 == 1 and not (training.is_uneven and get_rank())
        for _ in range(training.accumulation):
            if training.evaluates:
                with torch.no_grad():
                    losses.append(model.compute_loss(generator).item())
                model.compute_loss(generator)  # a graph without a backward pass
            loss = model.compute_loss(generator) / training.accumulation
            optimizer.scale(loss).backward()
            losses.append(loss.item())
        optimizer.step()
        norms.append(optimizer.grad_norm)
    return losses, norms


def train_units(zero: int, training: Training) -> Result:
    model = make_deep(training)
    optimizer = make_optimizer(
        model,
        zero,
        max_norm=training.max_norm,
        offload=training.offload,
        keep_after_forward=training.keep if zero == 3 else False,
        unit_order=training.unit_order if zero == 3 else "calls",
        prefetch_units=training.prefetch if zero == 3 else 1,
        reduce=training.reduce if zero == 3 else "backward",
        whole_below=training.whole_below if zero == 3 else 0,
        loss_scale=training.loss_scale,
    )
    losses, norms = run_steps(model, optimizer, training, range(4))
    if zero == 3:
        whole = optimizer.consolidate_model()
    else:
        whole = {k: v.clone() for k, v in model.state_dict().items()}
    optimizer.close()
    return Result(losses, norms, whole)
