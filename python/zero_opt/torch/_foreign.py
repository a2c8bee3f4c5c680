# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers of torch that step parameters of a compiled step.

They would find no gradients and change nothing, without a word; or train a parameter that
has a .grad twice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from zero_opt.errors import ZeroOptError
from zero_opt.torch._aliases import find_owner
from zero_opt.torch._state_dicts import StateDicts


def _refuse(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    if isinstance(optimizer, StateDicts):
        return
    kind = type(optimizer).__name__
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            owner = find_owner(parameter)
            for entry in owner.trained if owner else ():
                if entry.parameter is parameter:
                    raise ZeroOptError(
                        f"{kind}.step() has parameter '{entry.name}', whose gradients a "
                        f"zero_opt optimizer takes; leave it out of {kind}, or close() the "
                        "zero_opt optimizer first"
                    )


def watch() -> None:
    """Looks at all optimizers of torch from now on. Called once."""
    register_optimizer_step_pre_hook(_refuse)
