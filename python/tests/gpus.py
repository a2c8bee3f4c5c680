# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Twins on a GPU and on the CPU, ranks that share one GPU, and models whose bits are the
same whenever they run."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import zero_opt.torch as zo
from zero_opt.torch._pieces import unprotect

GPU = torch.device("cuda")
SIZES: tuple[tuple[int, ...], ...] = ((7, 3), (), (4099,), (0,), (64, 1025), (1,))
DTYPES = [torch.float32, torch.bfloat16]


class Listed(nn.Module):
    def __init__(
        self, dtype: torch.dtype, sizes: Sequence[tuple[int, ...]] = SIZES
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.list = nn.ParameterList(torch.randn(size).to(dtype) for size in sizes)


def deliver(
    model: nn.Module, seed: int, scale: float = 1.0, leave_out: Sequence[int] = ()
) -> torch.Tensor:
    """A loss of which |model| has gradients that are random, and the same on all
    devices."""
    generator = torch.Generator().manual_seed(seed)
    terms = []
    for number, p in enumerate(model.parameters()):
        gradient = scale * torch.randn(p.shape, generator=generator)
        if number not in leave_out:
            terms.append((p.float() * gradient.to(p.dtype).float().to(p.device)).sum())
    return sum(terms, torch.zeros((), device=terms[0].device))


def list_differences(
    ours: nn.Module, optimizer: Any, twin: nn.Module, reference: Any
) -> list[str]:
    """What is not equal, bit by bit."""
    found = []
    for (name, p), q in zip(ours.named_parameters(), twin.parameters(), strict=True):
        if not torch.equal(p.detach().cpu(), q.detach()):
            found.append(name)
        expected = reference.state[q]
        for key, value in optimizer.state[p].items():
            if not torch.equal(unprotect(value), unprotect(expected[key])):
                found.append(f"{key} of {name}")
    if optimizer.grad_norm != reference.grad_norm:
        found.append(f"norm: {optimizer.grad_norm} and {reference.grad_norm}")
    return found


def make_twins(
    dtype: torch.dtype, make: Callable[..., Any] = zo.AdamW, **options: Any
) -> tuple[nn.Module, Any, nn.Module, Any]:
    twin = Listed(dtype)
    ours = copy.deepcopy(twin).to(GPU)
    return ours, make(ours, lr=0.01, **options), twin, make(twin, lr=0.01, **options)


def share_gpu() -> int:
    """The rank. NCCL refuses two ranks of one machine on one GPU, so they pose as two."""
    rank = torch.distributed.get_rank()
    os.environ |= {
        "NCCL_HOSTID": f"zero-opt-{rank}",
        "NCCL_SOCKET_IFNAME": "lo",
        "NCCL_IB_DISABLE": "1",
        "NCCL_NET": "Socket",
    }
    return rank


@contextlib.contextmanager
def repeatable() -> Iterator[None]:
    """PyTorch chooses kernels that have the same bits each time."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.use_deterministic_algorithms(False)
