# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How gradients go from hooks to the step.

The CPU reads a gradient in the hook, while the gradient is in its caches. A GPU gets them
in batches: the work of torch that comes after a batch waits until the batch is read, and
would otherwise wait for each gradient.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Protocol, TypeAlias

import torch

from zero_opt import _abi
from zero_opt._step import Step
from zero_opt.torch._aliases import Placed
from zero_opt.torch._device import Device
from zero_opt.torch._parameters import DTYPES

Take: TypeAlias = Callable[[torch.Tensor], None]

# A batch is memory that the backward pass does not get back yet.
BATCH_BYTES = 25 << 20


class Receiver(Protocol):
    def make_take(self, entry: Placed) -> Take:
        """A function that takes a contiguous gradient of a parameter."""

    def flush(self) -> None:
        """Before a call that closes a backward pass."""

    def settle(self) -> None:
        """After a call that closes one."""

    def drop(self) -> None:
        """The gradients since the last step are not needed."""


def _describe(entry: Placed) -> _abi.Tensor:
    """A gradient of a parameter, without its memory."""
    return _abi.new(
        _abi.Tensor,
        dtype=_abi.DTYPES[DTYPES[entry.view.dtype]],
        elements=entry.view.numel(),
    )


class AtOnce:
    """For the CPU."""

    def __init__(self, step: Step) -> None:
        self._step = step
        # Gradients that the runtime still reads, with the timepoint of their release.
        self._held: list[tuple[int, torch.Tensor]] = []
        self._release = ctypes.c_uint64()

    def make_take(self, entry: Placed) -> Take:
        # All that a call does not have to make anew.
        tensor = _describe(entry)
        number = entry.number
        pointer = ctypes.addressof(tensor)
        release = self._release
        release_pointer = ctypes.addressof(release)
        take_gradient = self._step.gradient

        def take(gradient: torch.Tensor) -> None:
            tensor.data = gradient.data_ptr()
            if status := take_gradient(number, pointer, None, release_pointer):
                raise self._step.error(status)
            if release.value:
                self._held.append((release.value, gradient))
            elif self._held:  # this gradient may have closed a bucket
                is_released = self._step.is_released
                self._held = [entry for entry in self._held if not is_released(entry[0])]

        return take

    def flush(self) -> None:
        pass

    def settle(self) -> None:
        self._held.clear()

    def drop(self) -> None:
        self._held.clear()


class InBatches:
    """For a GPU. Memory of a gradient that was read goes back to torch, which gives it to
    later work of the same stream only."""

    def __init__(self, step: Step, device: Device) -> None:
        self._step = step
        self._device = device
        self._stream: int | None = None
        self._numbers: list[int] = []
        self._tensors: list[_abi.Tensor] = []
        self._gradients: list[torch.Tensor] = []
        self._bytes = 0

    def make_take(self, entry: Placed) -> Take:
        number = entry.number
        # A pass delivers each parameter once, so a batch has it once.
        tensor = _describe(entry)
        size = entry.view.numel() * entry.view.element_size()
        device = self._device

        def take(gradient: torch.Tensor) -> None:
            stream = device.stream
            if stream != self._stream:
                self.flush()
                self._stream = stream
            tensor.data = gradient.data_ptr()
            self._numbers.append(number)
            self._tensors.append(tensor)
            self._gradients.append(gradient)
            self._bytes += size
            if self._bytes >= BATCH_BYTES:
                self.flush()

        return take

    def flush(self) -> None:
        if self._numbers:
            self._device.check_no_capture()
            # After an error the batch stays: no gradient is lost unless the caller
            # drops them.
            self._step.gradients(self._numbers, self._tensors, self._stream)
            self.drop()

    def settle(self) -> None:
        pass

    def drop(self) -> None:
        self._numbers.clear()
        self._tensors.clear()
        self._gradients.clear()
        self._bytes = 0


def make_receiver(step: Step, device: Device) -> Receiver:
    return InBatches(step, device) if device.is_queued else AtOnce(step)
