# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a script does to copies of the state.

`optimizer.state` is read from the step when it is asked for. A script that writes there, to
reset moments, would change nothing, so the next step refuses it.
"""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any, NoReturn

import torch

from zero_opt.errors import ZeroOptError
from zero_opt.torch import _pieces

_REMEDY = (
    "change state_dict() and load it with load_state_dict(), or create a new optimizer"
)


class _ReadOnly(dict[str, Any]):
    """The state of one parameter. Its own copies are dicts that may be changed."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ZeroOptError(f"an entry of optimizer.state is a copy; {_REMEDY}")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


@dataclasses.dataclass
class _Copy:
    name: str
    key: str
    # It shares torch's count of writes with the tensor, and has no memory. So the count
    # outlives a tensor that is written and dropped at once.
    count: torch.Tensor
    version: int
    tensor: weakref.ref[torch.Tensor]


class Copies:
    """Tensors that the script got from `optimizer.state`."""

    def __init__(self) -> None:
        self._given: list[_Copy] = []

    def give(self, name: str, state: dict[str, Any]) -> dict[str, Any]:
        for key, entry in state.items():
            tensor: torch.Tensor = _pieces.unprotect(entry)
            if tensor.is_inference():  # torch counts no writes to it
                continue
            count = tensor.detach()
            count.data = count.new_empty(0)
            self._given.append(_Copy(name, key, count, count._version, weakref.ref(tensor)))
        return _ReadOnly(state)

    def check(self) -> None:
        """Before a step: refuses writes since the last load."""
        if not self._given:
            return
        for copy in self._given:
            if copy.count._version != copy.version:
                raise ZeroOptError(
                    f"'{copy.key}' of parameter '{copy.name}' in optimizer.state was "
                    f"written, and is a copy; {_REMEDY}"
                )
        self._given = [copy for copy in self._given if copy.tensor() is not None]

    def forget(self) -> None:
        """All state was loaded."""
        self._given.clear()
