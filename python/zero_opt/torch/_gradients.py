# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that others than the optimizer write, or wait for.

A gradient is taken while the backward pass computes it, and `.grad` is None behind it. What
a script then does to `.grad` would be added to a sum that torch replaces, or do nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch.utils.hooks import RemovableHandle

from zero_opt.errors import ZeroOptError
from zero_opt.torch._aliases import Placed


def check_not_written(trained: Iterable[Placed], arriving: int | None = None) -> None:
    """|arriving| is the number of the parameter whose gradient autograd has just summed."""
    for entry in trained:
        if entry.number != arriving and entry.parameter.grad is not None:
            raise ZeroOptError(
                f"parameter '{entry.name}' has a .grad besides the gradient that "
                "backward() has delivered: DistributedDataParallel or the caller "
                "wrote it; remove the wrapper, or the code that writes it"
            )


def check_last_hooks(
    trained: Iterable[Placed], handles: Mapping[int, RemovableHandle]
) -> None:
    for entry in trained:
        parameter: Any = entry.parameter
        hooks = parameter._post_accumulate_grad_hooks or {}
        handle = handles[entry.number]
        if handle.id in hooks and next(reversed(hooks)) != handle.id:
            raise ZeroOptError(
                f"parameter '{entry.name}' has a hook of register_post_accumulate_grad_hook"
                "() that was registered after the optimizer was created, and would find no "
                ".grad; register it before, or use register_hook()"
            )
