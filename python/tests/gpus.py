# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that share one GPU, and models whose bits are the same whenever they run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


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
