#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small GPT on the licences that every Debian has, on any number of ranks.

torchrun --standalone --nproc-per-node 2 train_gpt.py

The lines with a number are those that differ from a script with DistributedDataParallel.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import zero_opt.torch as zo


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, words: int, length: int, width: int, layers: int) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, width // 32) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        nn.init.normal_(self.words.weight, std=0.02)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def read_text() -> torch.Tensor:
    folder = pathlib.Path("/usr/share/common-licenses")
    text = b"".join(
        file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()
    )
    known = {byte: number for number, byte in enumerate(sorted(set(text)))}
    return torch.tensor([known[byte] for byte in text])


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a small GPT.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument(
        "--accumulation", type=int, default=2, help="backward passes a step"
    )
    parser.add_argument("--zero", type=int, default=2, help="the stage of ZeRO: 0, 1 or 2")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--lr", type=float, default=2e-3)
    options = parser.parse_args()

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo")
    rank = dist.get_rank() if dist.is_initialized() else 0
    torch.manual_seed(0)
    text = read_text()
    length = 64
    model = Gpt(int(text.max()) + 1, length, width=64, layers=2)
    model.to(getattr(torch, options.dtype))
    # 1: no model = DistributedDataParallel(model)
    optimizer = zo.AdamW(  # 2: in place of torch.optim.AdamW
        model, lr=options.lr, weight_decay=0.1, max_norm=1.0, zero=options.zero
    )
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, options.steps)
    generator = torch.Generator().manual_seed(1 + rank)
    started = time.perf_counter()
    for step in range(1, options.steps + 1):
        total = 0.0
        for _ in range(options.accumulation):
            begins = torch.randint(len(text) - length, (8,), generator=generator)
            tokens = torch.stack([text[begin : begin + length + 1] for begin in begins])
            logits = model(tokens[:, :-1]).float()
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            (loss / options.accumulation).backward()
            total += loss.item() / options.accumulation
        # 3: no clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if rank == 0 and (step % 50 == 0 or step in (1, options.steps)):
            seconds = (time.perf_counter() - started) / step
            print(
                f"step {step}/{options.steps}  loss {total:.3f}  gradient norm "
                f"{optimizer.grad_norm:.3f}  {1000 * seconds:.0f} ms a step",
                flush=True,
            )
    optimizer.close()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
