# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A unit of ZeRO stage 3 on one rank: its parameters have values while it is unsharded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from zero_opt._step import Step
from zero_opt.errors import ZeroOptError
from zero_opt.torch._aliases import Placed, put_back
from zero_opt.torch._arguments import Arguments
from zero_opt.torch._device import Device
from zero_opt.torch._units import Unit


def _move_versions(entries: list[Placed], by: int) -> None:
    """What autograd has saved of a parameter is right at one version only."""
    parameters = [entry.parameter for entry in entries]
    versions = [parameter._version + by for parameter in parameters]
    function: Any = torch._C._autograd._unsafe_set_version_counter
    try:
        function(parameters, versions)
    except TypeError:  # earlier versions of torch take one tensor
        for parameter, version in zip(parameters, versions, strict=True):
            function(parameter, version)
    for entry in entries:
        entry.version += by


class ShardedUnit:
    """A unit of the step on this rank."""

    def __init__(self, unit: Unit, number: int, entries: list[Placed]) -> None:
        self.name = unit.name
        self.number = number
        self.entries = entries
        self.is_unsharded = False
        self.is_kept = False
        # Forward passes that run now; a unit may call itself.
        self.depth = 0
        # Of each of them: what it got in place of its arguments.
        self.arguments: list[Arguments | None] = []
        # And whether torch asks the unit's hooks of saved tensors.
        self.has_hooks: list[bool] = []
        # Whether the backward pass of the unit runs, and whether it has ended in the
        # backward pass of the step.
        self.is_in_backward = False
        self.has_ended = False
        self._views: list[torch.Tensor] = []
        _move_versions(entries, 1)

    @torch.inference_mode(False)
    def attach(self, step: Step, device: Device) -> None:
        """The parameters are those that were gathered."""
        if not self._views:
            # Their memory stays where it is.
            self._views = [
                device.view(step.get_memory(e.number), e.view) for e in self.entries
            ]
        for entry, view in zip(self.entries, self._views, strict=True):
            if not put_back(entry):
                raise ZeroOptError(
                    f"parameter '{entry.name}' of unit '{self.name}' was moved or written, "
                    "and each rank has a slice of it only; change parameters of units "
                    "before the optimizer is created"
                )
            entry.parameter.data = entry.unsharded = view
        _move_versions(self.entries, -1)

    def detach(self) -> None:
        for entry in self.entries:
            entry.parameter.data = entry.view
            entry.unsharded = None
        # The memory gets other values. Autograd refuses what it has saved of it until
        # the unit is unsharded again.
        _move_versions(self.entries, 1)

    def find_name(self, tensor: torch.Tensor) -> str | None:
        """The parameter of the unit that |tensor| is, or is a view of."""
        try:
            place = tensor.untyped_storage().data_ptr()
        except (NotImplementedError, RuntimeError):  # a sparse one has several
            return None
        for entry, view in zip(self.entries, self._views, strict=False):
            both = view, entry.parameter  # which has no values while the unit is sharded
            # Without elements there is no memory.
            if place and any(t.untyped_storage().data_ptr() == place for t in both):
                return entry.name
        return None


class Boundary(torch.autograd.Function):
    """Stands before a unit: its backward pass ends that of the unit."""

    @staticmethod
    def forward(
        ctx: Any, end: Callable[[], None], *tensors: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        ctx.end = end
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        ctx.end()
        return None, *gradients
