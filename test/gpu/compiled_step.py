# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled step on one rank, through the C interface."""

from __future__ import annotations

import ctypes
import json
import os
from ctypes import byref, c_char_p, c_double, c_int32, c_int64, c_uint32, c_void_p
from typing import Any, Callable

HOST, CUDA = b"host", b"cuda"


class Options(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("threads", c_int32),
                ("timeout_ms", c_int64), ("poison", c_int32),
                ("check_promises", c_int32), ("find_nonfinite", c_int32),
                ("device_number", c_int32), ("ordinal", c_int32), ("graphs", c_int32),
                ("communicator", c_void_p), ("give_up", c_void_p),
                ("device", c_char_p), ("communicator_name", c_char_p)]


class Tensor(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("space", c_int32),
                ("reserved", c_int32), ("elements", c_int64), ("data", c_void_p)]


class Results(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("verdict", c_int32),
                ("backwards", c_int64), ("num_values", c_int32),
                ("reserved", c_int32), ("values", ctypes.POINTER(c_double))]


class StateEntry(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("parameter", c_int32), ("role", c_char_p),
                ("dtype", c_int32), ("reserved", c_int32), ("begin", c_int64),
                ("end", c_int64)]


BYTES = [2, 2, 4, 8]  # by zero_rt_dtype


class Step:
    """A compiled step on one rank."""

    def __init__(self, folder: str, place: str, device: bytes, gpu: int) -> None:
        """|place| is its folder below |folder|, and ends in its name."""
        self.name = name = os.path.basename(place)
        self.zero = ctypes.CDLL(os.path.join(folder, "libzero_rt.so"),
                                mode=ctypes.RTLD_GLOBAL)
        self.zero.zero_rt_message.restype = c_char_p
        library = c_void_p()
        path = os.path.join(folder, place, f"lib{name}.so")
        self.check(self.zero.zero_rt_open(path.encode(), byref(library)))
        with open(os.path.join(folder, place, f"{name}.plan.json")) as file:
            self.sizes: list[int] = [p["elements"] for p in json.load(file)["parameters"]]
        self.group, self.runtime, self.step = c_void_p(), c_void_p(), c_void_p()
        threads = len(os.sched_getaffinity(0))
        options = Options(ctypes.sizeof(Options), threads, ordinal=gpu,
                          device=device)
        self.check(self.zero.zero_rt_local_group_create(1, byref(self.group)))
        self.check(self.zero.zero_rt_create(self.group, 0, byref(options),
                                            byref(self.runtime)))
        self.check(self.call("create")(self.runtime, library, None,
                                        byref(self.step)))

    def call(self, name: str) -> Callable[..., int]:
        function: Callable[..., int] = getattr(self.zero, f"zero_rt_step_{name}")
        return function

    def check(self, status: int) -> None:
        if status:
            raise RuntimeError(f"{self.name}: {self.zero.zero_rt_message().decode()}")

    def open(self, stream: int,
             write: Callable[[int, Any], None] | None = None) -> None:
        """Everything before apply, with gradients in slots; |write|(parameter, slot)
        fills them."""
        self.check(self.call("begin_backward")(self.step, c_int32(0)))
        slot, beta = Tensor(ctypes.sizeof(Tensor)), c_double()
        get, ready = self.call("gradient_slot"), self.call("gradient_ready")
        for parameter in range(len(self.sizes)):
            self.check(get(self.step, c_int32(parameter), c_void_p(stream), byref(slot),
                           byref(beta)))
            if write:
                write(parameter, slot)
            self.check(ready(self.step, c_int32(parameter), c_void_p(stream)))

    def begin(self) -> None:
        self.check(self.call("begin_backward")(self.step, c_int32(0)))

    def give(self, parameter: int, dtype: int, data: int, stream: int) -> None:
        """A gradient at the address |data|; |stream| goes on when it was read."""
        elements = self.sizes[parameter]
        tensor = Tensor(ctypes.sizeof(Tensor), dtype, 0, 0, elements,
                        data if elements else None)
        self.check(self.call("gradient")(self.step, c_int32(parameter), byref(tensor),
                                         c_void_p(stream), None))

    def apply(self, stream: int) -> None:
        rate = (c_double * 1)(1e-3)
        self.check(self.call("apply")(self.step, rate, c_int32(1), c_void_p(stream)))

    def wait(self, stream: int) -> None:
        self.check(self.call("parameter_wait")(self.step, c_int32(-1), c_void_p(stream)))

    def get_results(self) -> Results:
        results = Results(ctypes.sizeof(Results))
        self.check(self.call("results")(self.step, byref(results)))
        if results.verdict:
            raise RuntimeError(f"{self.name}: the step was not applied "
                               f"(verdict {results.verdict})")
        return results

    def read_state(self) -> list[tuple[str, bytes]]:
        """A name and the bytes of each piece."""
        count, state = c_int64(), []
        self.check(self.call("state_count")(self.step, byref(count)))
        for i in range(count.value):
            entry = StateEntry(ctypes.sizeof(StateEntry))
            self.check(self.call("state_describe")(self.step, c_int64(i), byref(entry)))
            size = (entry.end - entry.begin) * BYTES[entry.dtype]
            data = ctypes.create_string_buffer(max(1, size))
            self.check(self.call("state_read")(self.step, c_int64(i), data,
                                               c_int64(size)))
            state.append((f"{entry.role.decode()} of parameter {entry.parameter}",
                          data.raw[:size]))
        return state

    def close(self) -> None:
        self.check(self.call("destroy")(self.step))
        self.check(self.zero.zero_rt_destroy(self.runtime))
        self.check(self.zero.zero_rt_group_destroy(self.group))
