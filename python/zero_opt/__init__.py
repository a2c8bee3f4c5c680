# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled training steps from Python. `zero_opt.torch` has optimizers for PyTorch."""

from zero_opt.errors import ZeroOptError

__all__ = ["ZeroOptError"]
__version__ = "0.2.0"
