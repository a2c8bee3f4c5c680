# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What autograd saves in the forward pass of a unit of ZeRO stage 3.

A backward pass may reach a unit on a way that no output of its module shows: by a loss that
the module has put into an attribute, or by an output in an object of another class. So
the backward pass of a unit begins at the latest when it reads the first saved tensor.

torch asks the innermost hooks only. If others have any, such as those of non-reentrant
checkpointing and save_on_cpu, theirs are asked and these are not.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from zero_opt.errors import ZeroOptError
from zero_opt.torch._sharded_unit import ShardedUnit

_Saved: TypeAlias = tuple[torch.Tensor, int]

_autograd: Any = torch._C._autograd


def runs_backward() -> bool:
    return bool(torch._C._current_graph_task_id() != -1)


def _find_top() -> tuple[Any, Any] | None:
    """The hooks that torch asks now."""
    found: tuple[Any, Any] | None = _autograd._top_saved_tensors_default_hooks(False)
    return found


def _may_push() -> bool:
    # torch tells since version 2.8. Within torch.func it refuses hooks.
    return (
        hasattr(_autograd, "_top_saved_tensors_default_hooks")
        and _autograd._saved_tensors_hooks_get_disabled_error_message() is None
    )


class SavedTensors:
    """The hooks of all forward passes of one unit."""

    def __init__(self, unit: ShardedUnit, begin: Callable[[], None]) -> None:
        """|begin| begins the backward pass of the unit."""
        self._unit = unit
        self._begin = begin
        self._hooks = self._pack, self._unpack

    def push(self) -> bool:
        """Whether torch asks these hooks from now on."""
        if not _may_push() or _find_top() is not None:
            return False
        _autograd._push_saved_tensors_default_hooks(*self._hooks)
        return True

    def pop(self) -> None:
        """The user may have interrupted a forward pass, and be in hooks of others now."""
        top = _find_top()
        if top is not None and top[0] is self._hooks[0]:
            _autograd._pop_saved_tensors_default_hooks()
        # torch asks for an issue in its own tracker.
        if "saved tensor hooks" in str(sys.exc_info()[1]):
            warnings.warn(
                f"unit '{self._unit.name}' calls torch.func.grad() or the like, which "
                "refuses the hooks of units; call the model within "
                "torch.autograd.graph.disable_saved_tensors_hooks('')",
                stacklevel=2,
            )

    def _pack(self, tensor: torch.Tensor) -> _Saved:
        # A node that keeps its own output would keep itself alive.
        return tensor if tensor.is_leaf else tensor.detach(), tensor._version

    def _unpack(self, saved: _Saved) -> torch.Tensor:
        tensor, version = saved
        if not self._unit.is_in_backward and runs_backward():
            self._begin()
        # torch itself compares versions only where there are no hooks.
        if tensor._version != version:
            self._refuse(tensor, version)
        return tensor

    def _refuse(self, tensor: torch.Tensor, version: int) -> None:
        unit = self._unit
        if (name := unit.find_name(tensor)) is None:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by "
                f"an inplace operation: a tensor {list(tensor.shape)} that unit "
                f"'{unit.name}' has saved is at version {tensor._version}; expected "
                f"version {version} instead"
            )
        if not unit.is_unsharded:
            raise ZeroOptError(
                f"parameter '{name}' is read from the graph of unit '{unit.name}', which "
                "is sharded; read it in a backward pass"
            )
        raise ZeroOptError(
            f"parameter '{name}' of unit '{unit.name}' has changed since the forward pass "
            "that this backward pass belongs to; make the forward pass again after step()"
        )
