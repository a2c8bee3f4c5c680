# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one exception of this package."""

from __future__ import annotations


class ZeroOptError(RuntimeError):
    """What went wrong, and the remedy, in one sentence.

    `status` is the runtime's name of the error, such as "mismatch" or "timeout". It is
    empty if the error did not come from the runtime.
    """

    def __init__(self, message: str, status: str = "") -> None:
        super().__init__(message)
        self.status = status
