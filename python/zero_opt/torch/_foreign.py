# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers of torch that step parameters of a compiled step, and wrappers that step one.

The optimizers would find no gradients and change nothing, without a word; or train a
parameter that has a .grad twice. A wrapper of Accelerate would find no gradients to clip.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from zero_opt.errors import ZeroOptError
from zero_opt.torch._aliases import list_open
from zero_opt.torch._state_dicts import StateDicts


def _check_caller() -> None:
    """Refuses a step by a wrapper that `accelerator.prepare` has made. Its
    `clip_grad_norm_` would clip nothing, and return 0."""
    frame = sys._getframe(2)
    for _ in range(8):  # wrappers of torch are between
        if frame is None:
            return
        if frame.f_globals.get("__name__") == "accelerate.optimizer":
            wrapper = type(frame.f_locals.get("self"))
            if wrapper.__module__.startswith("accelerate."):
                raise ZeroOptError(
                    "accelerator.prepare() got a zero_opt optimizer, and Accelerate finds "
                    "no gradients to clip; call zero_opt.torch.accelerate.prepare("
                    "accelerator, model, optimizer) for both, and accelerator.prepare() "
                    "for the rest"
                )
            return
        frame = frame.f_back  # type: ignore[assignment]


def _refuse(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    if isinstance(optimizer, StateDicts):
        _check_caller()
        return
    kind = type(optimizer).__name__
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for aliases in list_open():
        for entry in aliases.trained:
            # A parameter that was replaced is the model's, and not yet the step's.
            current = [entry.parameter, *(slot.get() for slot in entry.slots)]
            if any(id(parameter) in stepped for parameter in current):
                raise ZeroOptError(
                    f"{kind}.step() has parameter '{entry.name}', whose gradients a "
                    f"zero_opt optimizer takes; leave it out of {kind}, or close() the "
                    "zero_opt optimizer first"
                )


def watch() -> None:
    """Looks at all optimizers of torch from now on. Called once."""
    register_optimizer_step_pre_hook(_refuse)
