# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clocks and reference operations of the processor and of a GPU."""

from __future__ import annotations

import ctypes
import platform
import statistics
import time
from typing import Any, Callable, Optional

# Names and seconds of kernels.
Kernels = list[tuple[str, float]]

REPEATS = 7
# No GPU has more cycles in a second.
HERTZ = 3e9


class Host:
    """Everything is done when a call returns."""

    stream = 0
    machine = f"processor: {platform.processor() or platform.machine()}"

    def time(self, body: Callable[[], Any],
             before: Callable[[], Any] = lambda: None) -> tuple[float, float]:
        """Seconds of |body| on the device, and those of the host in it."""
        seconds = []
        for _ in range(REPEATS):
            before()
            begin = time.perf_counter()
            body()
            seconds.append(time.perf_counter() - begin)
        median = statistics.median(seconds)
        return median, median

    def time_while_busy(self, body: Callable[[], Any]) -> tuple[
            float | None, float | None]:
        body()
        return None, None

    def list_kernels(self, body: Callable[[], Any]) -> Kernels | None:
        body()
        return None

    def time_copy(self, size: int, to_host: bool = False,
                  to_device: bool = False) -> float:
        del to_host, to_device
        source = ctypes.create_string_buffer(max(1, size))
        target = ctypes.create_string_buffer(max(1, size))
        return self.time(lambda: ctypes.memmove(target, source, size))[0]

    def time_sum(self, elements: int) -> float | None:
        del elements
        return None

    def time_peer(self, sizes: list[int]) -> float | None:
        del sizes
        return None

    def fill(self, parameter: int, slot: Any) -> None:
        del parameter
        if slot.elements:
            values = (ctypes.c_float * slot.elements).from_address(slot.data)
            values[0] = 1e-3
            # Each half is copied to the next.
            done = 1
            while done < slot.elements:
                count = min(done, slot.elements - done)
                ctypes.memmove(slot.data + 4 * done, slot.data, 4 * count)
                done += count


class Memory:
    """Memory of a GPU for PyTorch."""

    def __init__(self, data: int, elements: int) -> None:
        self.__cuda_array_interface__ = {"shape": (elements,), "typestr": "<f4",
                                         "data": (data, False), "version": 2}


class Cuda:
    """Times by events on PyTorch's stream."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.stream: int = torch.cuda.current_stream().cuda_stream
        self.machine = (f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
                        f"CUDA {torch.version.cuda}")

    def sleep(self, seconds: float) -> None:
        self.torch.cuda._sleep(int(seconds * HERTZ))

    def time(self, body: Callable[[], Any],
             before: Callable[[], Any] = lambda: None) -> tuple[float, float]:
        torch = self.torch
        device: list[float] = []
        host: list[float] = []
        for _ in range(REPEATS):
            before()
            torch.cuda.synchronize()
            # The host queues all of it while the GPU is busy with something else, or
            # the GPU would wait for the host in between.
            busy = 2 * max(host) if host else 0
            begin = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            self.sleep(busy)
            begin.record()
            start = time.perf_counter()
            body()
            host.append(time.perf_counter() - start)
            end.record()
            torch.cuda.synchronize()
            device.append(begin.elapsed_time(end) * 1e-3)
        return statistics.median(device[1:]), statistics.median(host[1:])

    def time_while_busy(self, body: Callable[[], Any]) -> tuple[float, float]:
        """Seconds of the host in |body| behind a GPU that is busy, and of that."""
        torch = self.torch
        torch.cuda.synchronize()
        start = time.perf_counter()
        self.sleep(0.05)
        body()
        returned = time.perf_counter() - start
        torch.cuda.synchronize()
        return returned, time.perf_counter() - start

    def list_kernels(self, body: Callable[[], Any]) -> Kernels | None:
        """Names and seconds of the kernels that the GPU runs in |body|; None where the
        profiler sees nothing."""
        from torch.profiler import DeviceType, ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            body()
            self.torch.cuda.synchronize()
        return [(event.name, event.time_range.elapsed_us() * 1e-6)
                for event in seen.events()
                if event.device_type == DeviceType.CUDA and
                not event.name.startswith(("Memcpy", "Memset"))] or None

    def time_copy(self, size: int, to_host: bool = False,
                  to_device: bool = False) -> float:
        torch = self.torch

        def make(is_on_host: bool) -> Any:
            place: dict[str, Any] = {"pin_memory": True} if is_on_host else {"device": "cuda"}
            return torch.zeros(max(1, size), dtype=torch.uint8, **place)

        source, target = make(to_device), make(to_host)
        return self.time(lambda: target.copy_(source, non_blocking=True))[0]

    def time_sum(self, elements: int) -> float:
        """PyTorch's sum of an array of f32, which it only reads."""
        array = self.torch.zeros(max(1, elements), device="cuda")
        return self.time(array.sum)[0]

    def time_peer(self, sizes: list[int]) -> float:
        """clip_grad_norm_, fused AdamW and zero_grad, which drops gradients."""
        torch = self.torch
        parameters = [torch.nn.Parameter(torch.randn(size, device="cuda"))
                      for size in sizes]
        gradients = [torch.full_like(p, 1e-3) for p in parameters]
        optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.1,
                                      fused=True)

        def give() -> None:
            for parameter, gradient in zip(parameters, gradients):
                parameter.grad = gradient

        def step() -> None:
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad()

        seconds = self.time(step, before=give)[0]
        del parameters, gradients, optimizer
        torch.cuda.empty_cache()
        return seconds

    def fill(self, parameter: int, slot: Any) -> None:
        del parameter
        if slot.elements:
            memory = Memory(slot.data, slot.elements)
            self.torch.as_tensor(memory, device="cuda").fill_(1e-3)


def make_cuda(gpu: int) -> tuple[Optional[Cuda], str]:
    """A clock, or why there is none."""
    try:
        import torch
    except ImportError as error:
        return None, str(error)
    if not torch.cuda.is_available():
        return None, f"PyTorch {torch.__version__} finds no GPU"
    if not 0 <= gpu < torch.cuda.device_count():
        return None, f"PyTorch finds no GPU {gpu}"
    torch.cuda.set_device(gpu)
    return Cuda(torch), ""
