# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The structs, numbers and calls of the C interface (zero_rt/abi.h, step.h, tcp.h)."""

from __future__ import annotations

import ctypes
import re
from ctypes import (
    POINTER,
    c_char,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, TypeVar

from zero_opt._locate import find_runtime
from zero_opt.errors import ZeroOptError

VERSION = 16
DTYPES = {"f16": 0, "bf16": 1, "f32": 2, "f64": 3}
DTYPE_NAMES = {number: name for name, number in DTYPES.items()}
HINT_UNKNOWN = 0
HINT_MORE = 2
APPLIED = 0
SKIPPED_NONFINITE = 1


class Tensor(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("space", c_int32),
        ("reserved", c_int32),
        ("elements", c_int64),
        ("data", c_void_p),
    ]


class Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("threads", c_int32),
        ("timeout_ms", c_int64),
        ("poison", c_int32),
        ("check_preconditions", c_int32),
        ("find_nonfinite", c_int32),
        ("device_number", c_int32),
        ("ordinal", c_int32),
        ("graphs", c_int32),
        ("communicator", c_void_p),
        ("give_up", c_void_p),
        ("device", c_char_p),
        ("communicator_name", c_char_p),
        ("trace", c_char_p),
        ("nvtx", c_int32),
        ("reserved", c_int32),
        ("allocator", c_void_p),
    ]


class TcpOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("rank", c_int32),
        ("ranks", c_int32),
        ("port", c_int32),
        ("host", c_char * 256),
        ("timeout_ms", c_int64),
        ("local_rank", c_int32),
        ("listener", c_int32),
        ("job", c_char * 64),
        ("secret", c_char * 128),
    ]


class Results(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("outcome", c_int32),
        ("backward_passes", c_int64),
        ("num_values", c_int32),
        ("reserved", c_int32),
        ("values", POINTER(c_double)),
    ]


class StateEntry(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("parameter", c_int32),
        ("role", c_char_p),
        ("dtype", c_int32),
        ("reserved", c_int32),
        ("begin", c_int64),
        ("end", c_int64),
    ]


class InputInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("is_tokens", c_int32),
        ("is_addend", c_int32),
        ("is_hyper", c_int32),
        ("name", c_char_p),
        ("is_positive", c_int32),
        ("reserved", c_int32),
        ("argument", c_char_p),
    ]


class LibraryInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("ranks", c_int32),
        ("name", c_char_p),
        ("plan_hash", c_uint64),
        ("content_hash", c_uint64),
        ("num_parameters", c_int32),
        ("num_inputs", c_int32),
        ("num_results", c_int32),
        ("num_activations", c_int32),
        ("num_axes", c_int32),
        ("has_loss_scale", c_int32),
        ("num_executables", c_int32),
        ("reserved", c_int32),
    ]


Struct = TypeVar("Struct", bound=ctypes.Structure)


def new(struct: type[Struct], **fields: Any) -> Struct:
    return struct(struct_size=ctypes.sizeof(struct), **fields)


# The arguments of each call that returns a status.
_OUT = POINTER(c_void_p)
_CALLS: dict[str, list[Any]] = {
    "open": [c_char_p, _OUT],
    "library_describe": [c_void_p, POINTER(LibraryInfo)],
    "library_input": [c_void_p, c_int32, POINTER(InputInfo)],
    "local_group_create": [c_int32, _OUT],
    "tcp_listen": [POINTER(TcpOptions)],
    "tcp_group_create": [POINTER(TcpOptions), _OUT],
    "group_destroy": [c_void_p],
    "create": [c_void_p, c_int32, POINTER(Options), _OUT],
    "destroy": [c_void_p],
    "has_passed": [c_void_p, c_uint64, POINTER(c_int32)],
    "step_create": [c_void_p, c_void_p, c_void_p, _OUT],
    "step_destroy": [c_void_p],
    "step_find_parameter": [c_void_p, c_char_p, POINTER(c_int32)],
    "step_parameter": [c_void_p, c_int32, POINTER(Tensor)],
    "step_parameter_wait": [c_void_p, c_int32, c_void_p],
    "step_bind_parameter": [c_void_p, c_int32, POINTER(Tensor)],
    "step_parameters_changed": [
        c_void_p,
        POINTER(c_int32),
        c_int64,
        c_void_p,
        POINTER(c_int64),
    ],
    "step_unit_of": [c_void_p, c_int32, POINTER(c_int32)],
    "step_prefetch": [c_void_p, c_int32],
    "step_unshard": [c_void_p, c_int32, c_void_p],
    "step_reshard": [c_void_p, c_int32, c_void_p],
    "step_begin_backward": [c_void_p, c_int32],
    "step_gradient": [c_void_p, c_int32, c_void_p, c_void_p, c_void_p],
    "step_gradients": [c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_void_p],
    "step_accumulate": [c_void_p],
    "step_discard": [c_void_p],
    "step_apply": [c_void_p, POINTER(c_double), c_int32, c_void_p],
    "step_results": [c_void_p, POINTER(Results)],
    "step_loss_scale": [c_void_p, POINTER(c_double)],
    "step_save": [c_void_p, c_char_p, c_int64],
    "step_save_begin": [c_void_p, c_char_p, c_int64],
    "step_save_end": [c_void_p],
    "step_load": [c_void_p, c_char_p, POINTER(c_int64)],
    "step_load_begin": [c_void_p, c_char_p, POINTER(c_int64)],
    "step_backward_passes": [c_void_p, POINTER(c_int64)],
    "step_meet": [c_void_p, c_char_p],
    "step_state_count": [c_void_p, POINTER(c_int64)],
    "step_state_describe": [c_void_p, c_int64, POINTER(StateEntry)],
    "step_state_read": [c_void_p, c_int64, c_void_p, c_int64],
    "step_state_write": [c_void_p, c_int64, c_void_p, c_int64],
}


# Ranks have met in different collectives.
_OTHER_CALLS = re.compile(r"rank \d+ is in .*, rank \d+ in ")


class Runtime:
    """The loaded runtime. A call that fails raises the runtime's own sentence."""

    def __init__(self) -> None:
        path = find_runtime()
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ZeroOptError(f"the runtime {path} cannot be loaded: {error}") from error
        version = library.zero_rt_version
        version.restype = c_uint32
        if version() < VERSION:
            raise ZeroOptError(
                f"the runtime {path} has ABI version {version()}, this package needs "
                f"{VERSION}; build it anew",
                "unsupported",
            )
        self._message = library.zero_rt_message
        self._message.restype = c_char_p
        self._status_name = library.zero_rt_status_name
        self._status_name.restype = c_char_p
        self._status_name.argtypes = [c_int32]
        self.functions: dict[str, Any] = {}
        for name, arguments in _CALLS.items():
            function = getattr(library, f"zero_rt_{name}")
            function.argtypes = arguments
            function.restype = c_int32
            self.functions[name] = function

    def error(self, status: int) -> ZeroOptError:
        """The error of the last call, which returned |status|."""
        message = self._message().decode(errors="replace")
        name = self._status_name(status).decode()
        if name == "mismatch" and _OTHER_CALLS.search(message):
            message += (
                "; all ranks make the same calls in one order: as many forward and "
                "backward passes, and the same calls of the optimizer"
            )
        if name == "poisoned":
            message += "; close() the optimizer, and create a new one"
        return ZeroOptError(message, name)

    def call(self, name: str, *arguments: Any) -> None:
        if status := self.functions[name](*arguments):
            raise self.error(status)


_loaded: Runtime | None = None


def load() -> Runtime:
    global _loaded
    if _loaded is None:
        _loaded = Runtime()
    return _loaded
