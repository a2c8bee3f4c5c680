# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of Trainer and Accelerate share: a model, data, and the environment of a
launcher."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from unittest import mock

import torch
import torch.distributed as dist
from accelerate.state import AcceleratorState, GradientState
from transformers import GPT2Config, GPT2LMHeadModel


def make_gpt(
    seed: int, dropout: float = 0.0, dtype: torch.dtype = torch.float32
) -> GPT2LMHeadModel:
    torch.manual_seed(seed)
    config = GPT2Config(
        n_layer=2,
        n_embd=16,
        n_head=2,
        vocab_size=32,
        n_positions=12,
        bos_token_id=None,
        eos_token_id=None,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=dropout,
    )
    return GPT2LMHeadModel(config).to(dtype)


def make_rows(count: int) -> list[dict[str, torch.Tensor]]:
    """Texts of which different numbers of tokens count."""
    generator = torch.Generator().manual_seed(3)
    rows = []
    for row in range(count):
        tokens = torch.randint(32, (12,), generator=generator)
        labels = tokens.clone()
        labels[1 + (5 * row) % 11 :] = -100
        labels[1] = tokens[1]
        rows.append({"input_ids": tokens, "labels": labels})
    return rows


@contextlib.contextmanager
def launched() -> Iterator[int]:
    """This rank, with the environment that torchrun gives to each rank."""
    rank, size = (
        (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    )
    before = dict(os.environ)
    if size > 1:
        os.environ |= {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(size),
            "LOCAL_WORLD_SIZE": str(size),
        }
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        # Other tests go on with this process group.
        with mock.patch.object(dist, "destroy_process_group"):
            yield rank
    finally:
        os.environ.clear()
        os.environ.update(before)
        AcceleratorState._reset_state(True)
        GradientState._reset_state()
