# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers for PyTorch whose step is compiled and proved.

import zero_opt.torch as zo

optimizer = zo.AdamW(model, lr=3e-4, weight_decay=0.1, max_norm=1.0, zero=2)
"""

from zero_opt.errors import ZeroOptError
from zero_opt.torch import _foreign
from zero_opt.torch._weights import empty_parameters
from zero_opt.torch.optimizers import SGD, Adam, AdamW, Lion, Optimizer

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Lion",
    "Optimizer",
    "ZeroOptError",
    "empty_parameters",
]

_foreign.watch()
