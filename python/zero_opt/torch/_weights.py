# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models without values.

The parameters of such a model are on torch's meta device. Rank 0 reads them one at a time,
and each rank keeps what its step keeps: at stage 3 a slice. So no rank ever has the whole
model.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter
from torch.utils.weak import WeakIdKeyDictionary

from zero_opt.errors import ZeroOptError
from zero_opt.torch._parameters import ListedGroup
from zero_opt.torch._ranks import Ranks
from zero_opt.torch._source import Source, Wanted, Weights, describe

_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")
_lock = threading.Lock()
# By thread in a block: the empty parameter of each that was registered.
_made: dict[int, Any] = {}
_register: Any = nn.Module.register_parameter


def _register_empty(owner: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
    made = _made.get(threading.get_ident())
    if made is not None and parameter is not None and not parameter.is_meta:
        if isinstance(parameter, UninitializedParameter):
            raise ZeroOptError(
                f"parameter '{name}' has no shape yet; make lazy modules outside of "
                "empty_parameters()"
            )
        # One that is registered twice is tied.
        if (empty := made.get(parameter)) is None:
            like = torch.empty_like(parameter, device="meta")
            empty = nn.Parameter(like, requires_grad=parameter.requires_grad)
            made[parameter] = empty
        parameter = empty
    _register(owner, name, parameter)


@contextlib.contextmanager
def empty_parameters() -> Iterator[None]:
    """Modules that this thread makes in the block have parameters on the meta device, and
    buffers with values."""
    thread = threading.get_ident()
    if thread in _made:
        yield
        return
    module: Any = nn.Module
    with _lock:
        _made[thread] = WeakIdKeyDictionary()
        module.register_parameter = _register_empty
    try:
        yield
    finally:
        with _lock:
            del _made[thread]
            if not _made:
                module.register_parameter = _register


def _list_others(model: nn.Module, known: set[int], ranks: Ranks) -> list[torch.Tensor]:
    """The frozen parameters of |model| that are none of |known| and have memory of their
    own. Ranks must have the same."""
    found = [
        (name, parameter)
        for name, parameter in model.named_parameters()
        if id(parameter) not in known
        and not parameter.requires_grad
        and type(parameter) is nn.Parameter
        and type(parameter.data) is torch.Tensor
        and parameter.layout == torch.strided
        and not parameter.is_meta
        and parameter.untyped_storage().nbytes()
        >= parameter.numel() * parameter.element_size()
    ]
    own = [(name, tuple(p.shape), str(p.dtype)) for name, p in found]
    for rank, theirs in enumerate(ranks.gather(own)):
        if theirs != own:
            name = next(iter({entry[0] for entry in {*own} ^ {*theirs}}), "")
            raise ZeroOptError(
                f"frozen parameter '{name}' is not the same on rank {ranks.rank} and on "
                f"rank {rank}; make the model in the same way on all ranks"
            )
    return [parameter for _, parameter in found]


class Values:
    """The values of the parameters and buffers that are on the meta device."""

    def __init__(
        self,
        weights: Weights | None,
        device: Any,
        groups: list[ListedGroup],
        model: nn.Module | None,
    ) -> None:
        self._weights = weights
        self._source: Source | None = None
        self._empty: dict[int, Wanted] = {}  # by id
        if model is not None:
            self._note(model.named_parameters(remove_duplicate=False))
        for group in groups:
            self._note(group.params)
        if model is not None:
            self._note(model.named_buffers(remove_duplicate=False))
        self._device_name = device
        self._device: torch.device | None = None
        self._error = self._find_error(device)

    def _note(self, named: Any) -> None:
        for name, tensor in named:
            if tensor.is_meta:
                _, names = self._empty.setdefault(id(tensor), (tensor, []))
                names.append(name)

    def _find_error(self, device: Any) -> str | None:
        if not self._empty:
            if self._weights is None and device is None:
                return None
            what = "device" if self._weights is None else "weights"
            return (
                f"{what} is for a model on the meta device, and this one has values; leave "
                "it out"
            )
        what = describe(next(iter(self._empty.values())))
        if self._weights is None:
            return (
                f"{what} is on the meta device; give the optimizer the values of the "
                "model, such as weights='model.safetensors', or give the model memory with "
                "to_empty(device=...)"
            )
        if device is None:
            return f"{what} is on the meta device; say where it goes, such as device='cpu'"
        if (kind := torch.device(device).type) not in ("cpu", "cuda"):
            return f"device is {kind}, expected the CPU or a GPU of CUDA"
        return None

    def check(self, ranks: Ranks) -> None:
        """An error of one rank is one on all ranks, and so is a difference: before ranks
        wait for each other."""
        own = [names[0] for _, names in self._empty.values()]
        found = ranks.gather((self._error, own))
        for error in (self._error, *(error for error, _ in found)):
            if error:
                raise ZeroOptError(error)
        for rank, (_, names) in enumerate(found):
            if names != own:
                name = next(iter({*names} ^ {*own}), "")
                has = "values" if name in own else "none"
                raise ZeroOptError(
                    f"parameter '{name}' has {has} on rank {rank}, and not so on rank "
                    f"{ranks.rank}; make the model in the same way on all ranks"
                )
        if self._device_name is not None:
            self._device = torch.empty((), device=self._device_name).device

    def find_device(self, tensor: torch.Tensor) -> torch.device:
        """Where |tensor| is or goes."""
        return self._device if self._device and self.has(tensor) else tensor.device

    def has(self, tensor: torch.Tensor) -> bool:
        return id(tensor) in self._empty

    def find_all(self, ranks: Ranks) -> None:
        """Before any is read."""
        if self._weights is not None:
            self._source = Source(self._weights, ranks)
            self._source.find(self._empty.values())

    def _read(self, tensor: torch.Tensor) -> torch.Tensor:
        assert self._source is not None and self._device is not None
        return self._source.read(self._empty[id(tensor)], self._device)

    def fill(self, parameter: torch.Tensor) -> None:
        """Gives |parameter| its values, if it is empty. It stays the same object."""
        if not self.has(parameter):
            return
        values = nn.Parameter(self._read(parameter), parameter.requires_grad)
        # torch assigns no `.data` of another device. What is swapped has the hooks.
        hooks = {name: getattr(parameter, name) for name in _HOOKS}
        swap: Any = torch._C._swap_tensor_impl
        swap(parameter, values)
        for name, found in hooks.items():
            if found is not None:
                setattr(parameter, name, None)
                setattr(parameter, name, found)
        del self._empty[id(parameter)]

    def share(
        self,
        placed: list[torch.Tensor],
        frozen: list[torch.Tensor],
        model: nn.Module | None,
        ranks: Ranks,
    ) -> None:
        """Rank 0's values for all ranks, but for empty parameters among |placed|: `fill` is
        for one after the other. |frozen| may have parameters of |placed|."""
        ranks.broadcast_tensors(p for p in placed if not self.has(p))
        known = {id(parameter) for parameter in placed}
        frozen = [parameter for parameter in frozen if id(parameter) not in known]
        # A list of parameters need not have all of the model.
        others = [] if model is None else [p for p in model.parameters() if self.has(p)]
        for parameter in [*frozen, *others]:
            if id(parameter) not in known:
                self.fill(parameter)
        ranks.broadcast_tensors(frozen)
        if model is None:
            return
        known |= {id(parameter) for parameter in frozen}
        ranks.broadcast_tensors(_list_others(model, known, ranks))
        made: dict[int, torch.Tensor] = {}  # a buffer may be that of two modules
        for module in model.modules():
            for key, buffer in module._buffers.items():
                if buffer is not None and self.has(buffer):
                    if id(buffer) not in made:
                        made[id(buffer)] = self._read(buffer)
                    module._buffers[key] = made[id(buffer)]
        ranks.broadcast_tensors(model.buffers())
