# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one exception of this package."""

from __future__ import annotations

import sys


class ZeroOptError(RuntimeError):
    """What went wrong, and the remedy, in one sentence.

    `status` is the runtime's name of the error, such as "mismatch" or "timeout". It is
    empty if the error did not come from the runtime. `rank` is that of this process in
    torch.distributed, which a traceback names, too (from Python 3.11 on). It is None if
    there is one rank.
    """

    def __init__(self, message: str, status: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.rank = _get_rank()
        if self.rank is not None and sys.version_info >= (3, 11):
            self.add_note(f"on rank {self.rank}")


def _get_rank() -> int | None:
    """This package works without torch, too."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return None
    if not distributed.is_initialized() or distributed.get_world_size() < 2:
        return None
    rank: int = distributed.get_rank()
    return rank
