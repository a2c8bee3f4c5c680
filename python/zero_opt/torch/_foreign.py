# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers of torch that step parameters of a compiled step, wrappers that step one, and
torch's functions that clip gradients.

The optimizers would find no gradients and change nothing, without a word; or train a
parameter that has a .grad twice. A wrapper of Accelerate, and torch's functions, would find
no gradients to clip.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from zero_opt.errors import ZeroOptError
from zero_opt.torch._aliases import list_open
from zero_opt.torch._state_dicts import StateDicts

_ACCELERATE = (
    "accelerator.prepare() got a zero_opt optimizer, and Accelerate finds no gradients to "
    "clip; call zero_opt.torch.accelerate.prepare(accelerator, model, optimizer) for both, "
    "and accelerator.prepare() for the rest"
)


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
                raise ZeroOptError(_ACCELERATE)
            return
        frame = frame.f_back  # type: ignore[assignment]


def _find_trained(parameters: Iterable[torch.Tensor]) -> str | None:
    """The name of one of |parameters| that an open zero_opt optimizer trains."""
    ids = {id(parameter) for parameter in parameters}
    for aliases in list_open():
        for entry in aliases.trained:
            # A parameter that was replaced is the model's, and not yet the step's.
            current = [entry.parameter, *(slot.get() for slot in entry.slots)]
            if any(id(parameter) in ids for parameter in current):
                return entry.name
    return None


def _refuse(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    if isinstance(optimizer, StateDicts):
        _check_caller()
        return
    kind = type(optimizer).__name__
    stepped = [p for group in optimizer.param_groups for p in group["params"]]
    if name := _find_trained(stepped):
        raise ZeroOptError(
            f"{kind}.step() has parameter '{name}', whose gradients a zero_opt optimizer "
            f"takes; leave it out of {kind}, or close() the zero_opt optimizer first"
        )


_REMEDIES = {
    "clip_grad_norm_": "give the optimizer max_norm, and delete this call",
    "clip_grad_value_": "delete this call: the optimizer clips by max_norm; an update that "
    "clips each element can be written as an optimizer of your own",
}


def _watch_clipping(name: str) -> None:
    original: Callable[..., Any] = getattr(torch.nn.utils, name)

    @functools.wraps(original)
    def clip(parameters: Any, *arguments: Any, **others: Any) -> Any:
        listed = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        if found := _find_trained(listed):
            if sys._getframe(1).f_globals.get("__name__") == "accelerate.accelerator":
                raise ZeroOptError(_ACCELERATE)
            raise ZeroOptError(
                f"{name} has parameter '{found}', whose gradients a zero_opt optimizer has "
                f"taken, so nothing would be clipped; {_REMEDIES[name]}"
            )
        return original(listed, *arguments, **others)

    for module in (torch.nn.utils, torch.nn.utils.clip_grad):
        setattr(module, name, clip)


def watch() -> None:
    """Looks at all optimizers of torch, and at its functions that clip gradients, from now
    on. Called once."""
    register_optimizer_step_pre_hook(_refuse)
    for name in _REMEDIES:
        _watch_clipping(name)
