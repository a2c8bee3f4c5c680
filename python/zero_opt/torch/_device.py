# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the parameters of an optimizer are: in the memory of the CPU, or of one GPU.

A GPU does the work of a call later. The order of this work is that of torch's current
stream: a gradient is read after the work that computes it, and later work finds the memory
of the gradient free, and updated parameters.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Iterable
from typing import Any

import torch

from zero_opt._step import DeviceMemory, Place
from zero_opt.errors import ZeroOptError

# torch reads no bfloat16 from the interface, so the bits are read as integers.
_TYPESTRS = {torch.float16: "<f2", torch.bfloat16: "<i2", torch.float32: "<f4"}


@dataclasses.dataclass(frozen=True)
class _CudaArray:
    """Memory of a GPU, as torch takes it. torch keeps this object, and with it |owner|,
    as long as a tensor uses the memory."""

    owner: Any
    __cuda_array_interface__: dict[str, Any]


class Device:
    """The device of all parameters of an optimizer."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.is_gpu = device.type == "cuda"
        # Whether the work of a call is done after the call.
        self.is_queued = self.is_gpu

    @property
    def target(self) -> str | None:
        """What the compiler makes code for, besides the CPU."""
        return "cuda" if self.is_gpu else None

    @property
    def place(self) -> Place:
        if self.is_gpu:
            return Place(b"cuda", self.device.index, self.synchronize)
        return Place(None, 0, self.synchronize)

    @property
    def stream(self) -> int | None:
        """torch's current stream."""
        if not self.is_gpu:
            return None
        return torch.cuda.current_stream(self.device).cuda_stream

    def make_room(self) -> None:
        """Memory that torch keeps for later is free for others."""
        if self.is_gpu:
            torch.cuda.empty_cache()

    def has_autocast(self) -> bool:
        return torch.is_autocast_enabled(self.device.type)

    def check_no_capture(self) -> None:
        if self.is_gpu and torch.cuda.is_current_stream_capturing():
            raise ZeroOptError(
                "a CUDA graph is being captured, and a step cannot be part of one; capture "
                "the forward and backward pass without the optimizer's parameters, or none"
            )

    def choose_threads(self, offload: bool) -> int:
        """Of the CPU, for the step. torchrun gives a rank one thread. Beside a GPU the
        others have nothing to do."""
        threads = torch.get_num_threads()
        if self.is_gpu and offload:
            ranks = max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
            threads = max(threads, len(os.sched_getaffinity(0)) // ranks)
        return threads

    def synchronize(self) -> None:
        """Waits for the work on all streams."""
        if self.is_gpu:
            torch.cuda.synchronize(self.device)

    def view(self, memory: DeviceMemory, like: torch.Tensor) -> torch.Tensor:
        """A tensor in |memory| with the shape and dtype of |like|."""
        if not like.numel():
            return torch.empty_like(like)
        if self.is_gpu:
            array = _CudaArray(
                memory.owner,
                {
                    "shape": (like.numel(),),
                    "typestr": _TYPESTRS[like.dtype],
                    "data": (memory.address, False),
                    "version": 2,
                },
            )
            tensor = torch.as_tensor(array, device=self.device)
            return tensor.view(like.dtype).view(like.shape)
        kind = ctypes.c_char * (like.numel() * like.element_size())
        buffer: Any = kind.from_address(memory.address)
        buffer._zero_opt_step = memory.owner
        return torch.frombuffer(buffer, dtype=like.dtype).view(like.shape)


def find_device(named: Iterable[tuple[str, torch.device]]) -> Device:
    """The device of parameters that all have one of a supported kind."""
    first: tuple[str, torch.device] | None = None
    for name, device in named:
        if first is None:
            first = name, device
        elif device != first[1]:
            raise ZeroOptError(
                f"parameter '{name}' is on {device}, and '{first[0]}' is on "
                f"{first[1]}; move the model to one device before the optimizer is created"
            )
    assert first is not None  # an optimizer without parameters was refused
    return Device(first[1])
