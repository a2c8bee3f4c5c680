# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models without values.

The parameters of such a model are on torch's meta device. Rank 0 reads them one at a time,
and each rank keeps what its step keeps: at stage 3 a slice. So no rank ever has the whole
model.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from zero_opt.errors import ZeroOptError
from zero_opt.torch._parameters import ListedGroup
from zero_opt.torch._ranks import Ranks
from zero_opt.torch._source import Source, Wanted, Weights, describe


@contextlib.contextmanager
def empty_parameters() -> Iterator[None]:
    """Modules that are made in this block have parameters on the meta device, and buffers
    with values."""
    module: Any = nn.Module
    register = module.register_parameter

    def register_empty(owner: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None and not parameter.is_meta:
            empty = torch.empty_like(parameter, device="meta")
            parameter = nn.Parameter(empty, requires_grad=parameter.requires_grad)
        register(owner, name, parameter)

    module.register_parameter = register_empty
    try:
        yield
    finally:
        module.register_parameter = register


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
        self._check_arguments(device)
        self._device = None if device is None else torch.empty((), device=device).device

    def _note(self, named: Any) -> None:
        for name, tensor in named:
            if tensor.is_meta:
                _, names = self._empty.setdefault(id(tensor), (tensor, []))
                names.append(name)

    def _check_arguments(self, device: Any) -> None:
        if not self._empty:
            if self._weights is None and device is None:
                return
            raise ZeroOptError(
                f"{'device' if self._weights is None else 'weights'} is for a model on the "
                "meta device, and this one has values; leave it out"
            )
        what = describe(next(iter(self._empty.values())))
        if self._weights is None:
            raise ZeroOptError(
                f"{what} is on the meta device; give the optimizer "
                "the values of the model, such as weights='model.safetensors', or give the "
                "model memory with to_empty(device=...)"
            )
        if device is None:
            raise ZeroOptError(
                f"{what} is on the meta device; say where it goes, such as device='cpu'"
            )
        if (kind := torch.device(device).type) not in ("cpu", "cuda"):
            raise ZeroOptError(f"device is {kind}, expected the CPU or a GPU of CUDA")

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
        # torch assigns no `.data` of another device.
        swap: Any = torch.utils.swap_tensors
        swap(parameter, values)
        del self._empty[id(parameter)]

    def share(
        self,
        trained: list[torch.Tensor],
        frozen: list[torch.Tensor],
        model: nn.Module | None,
        ranks: Ranks,
    ) -> None:
        """Rank 0's values for all ranks, but for empty parameters among |trained|: `fill`
        is for one after the other."""
        ranks.broadcast_tensors(p for p in trained if not self.has(p))
        known = {id(parameter) for parameter in trained}
        # A list of parameters need not have all of the model.
        others = [] if model is None else [p for p in model.parameters() if self.has(p)]
        for parameter in [*frozen, *others]:
            if id(parameter) not in known:
                self.fill(parameter)
        ranks.broadcast_tensors(frozen)
        if model is None:
            return
        for module in model.modules():
            for key, buffer in module._buffers.items():
                if buffer is not None and self.has(buffer):
                    module._buffers[key] = self._read(buffer)
        ranks.broadcast_tensors(model.buffers())
