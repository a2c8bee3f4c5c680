# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Process groups and steps, with Python's types in place of C's."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import os
import pathlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from zero_opt import _abi
from zero_opt._locate import load_from_wheel
from zero_opt.errors import ZeroOptError


def _read_profiling() -> dict[str, Any]:
    """What a user asks for without a change of the script: a folder for traces, and ranges
    of NVTX."""
    trace = os.environ.get("ZERO_OPT_TRACE", "")
    nvtx = os.environ.get("ZERO_OPT_NVTX", "0")
    if nvtx not in ("0", "1"):
        raise ZeroOptError(f"ZERO_OPT_NVTX is '{nvtx}', expected 0 or 1")
    if nvtx == "1":
        load_from_wheel("libnvtx3interop.so.1", "libnvToolsExt.so.1")
    return {"trace": os.fsencode(trace) if trace else None, "nvtx": int(nvtx)}


@dataclasses.dataclass(frozen=True)
class StateEntry:
    """Elements [begin, end) of one role of a parameter; a scalar has no parameter."""

    number: int
    parameter: int | None
    role: str
    dtype: str
    begin: int
    end: int


@dataclasses.dataclass(frozen=True)
class Outcome:
    was_skipped: bool
    values: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Place:
    """A device of the runtime, by its name; None is the CPU. |synchronize| waits for all
    work that the caller has queued there."""

    device: bytes | None
    ordinal: int
    synchronize: Callable[[], None]


@dataclasses.dataclass(frozen=True)
class DeviceMemory:
    """Memory of a step, which it is as long as |owner| lives."""

    address: int
    owner: Any


class Group:
    """The ranks that step together; on one rank there is nothing to connect."""

    def __init__(self, rank: int, ranks: int, options: _abi.TcpOptions | None) -> None:
        self.rank = rank
        self.ranks = ranks
        self.handle = ctypes.c_void_p()
        runtime = _abi.load()
        if options is None:
            runtime.call("local_group_create", 1, ctypes.byref(self.handle))
        else:
            runtime.call(
                "tcp_group_create", ctypes.byref(options), ctypes.byref(self.handle)
            )


def _destroy(
    step: int | None, runtime: int | None, group: int | None, place: Place
) -> None:
    functions = _abi.load().functions
    if step:
        # Queued work of the caller may still read parameters.
        with contextlib.suppress(Exception):
            place.synchronize()
    # In a forked process these calls fail, as they must: the parent has the step.
    if step:
        functions["step_destroy"](step)
    if runtime:
        functions["destroy"](runtime)
    if group:
        functions["group_destroy"](group)


class _Lifetime:
    """When nothing has this object any more, the step is destroyed."""


class Step:
    """A step on this rank. The step lives as long as a tensor uses its memory: the
    owner of the memory keeps it alive, and nothing else destroys it. Where
    a call takes a stream, it is one of the device; None is the device's own."""

    def __init__(
        self,
        library: pathlib.Path,
        group: Group,
        place: Place,
        threads: int,
        timeout_s: float,
    ) -> None:
        self._runtime = _abi.load()
        self._call = self._runtime.call
        handle = ctypes.c_void_p()
        runtime = ctypes.c_void_p()
        opened = ctypes.c_void_p()
        try:
            self._call("open", os.fsencode(library), ctypes.byref(opened))
            self.inputs = self._list_inputs(opened)
            options = _abi.new(
                _abi.Options,
                threads=threads,
                timeout_ms=int(timeout_s * 1000),
                device=place.device,
                ordinal=place.ordinal,
                **_read_profiling(),
            )
            self._call(
                "create",
                group.handle,
                group.rank,
                ctypes.byref(options),
                ctypes.byref(runtime),
            )
            self._call("step_create", runtime, opened, None, ctypes.byref(handle))
        except BaseException:
            _destroy(None, runtime.value, group.handle.value, place)
            raise
        self.handle = handle
        # Of a parameter, tensor, stream and release. It returns a status: hooks have no
        # time for more.
        self.gradient: Callable[[int, int, int | None, int | None], int] = (
            functools.partial(self._runtime.functions["step_gradient"], handle.value)
        )
        self._runtime_handle = runtime
        self._lifetime: _Lifetime | None = _Lifetime()
        finalizer = weakref.finalize(
            self._lifetime, _destroy, handle.value, runtime.value, group.handle.value, place
        )
        # When a program ends, tensors may outlive this object. The system takes the
        # memory.
        finalizer.atexit = False

    def release(self) -> None:
        """Gives up the step, which is destroyed when no tensor uses its memory. Later calls
        are errors."""
        self._lifetime = None

    def _list_inputs(self, library: ctypes.c_void_p) -> list[str]:
        info = _abi.new(_abi.LibraryInfo)
        self._call("library_describe", library, ctypes.byref(info))
        names = []
        for number in range(info.num_inputs):
            entry = _abi.new(_abi.InputInfo)
            self._call("library_input", library, number, ctypes.byref(entry))
            names.append((entry.argument or entry.name).decode())
        return names

    def find_parameter(self, name: str) -> int:
        number = ctypes.c_int32()
        self._call("step_find_parameter", self.handle, name.encode(), ctypes.byref(number))
        return number.value

    def bind(self, parameter: int, dtype: str, elements: int, address: int) -> None:
        tensor = _abi.new(
            _abi.Tensor, dtype=_abi.DTYPES[dtype], elements=elements, data=address
        )
        self._call("step_bind_parameter", self.handle, parameter, ctypes.byref(tensor))

    def get_memory(self, parameter: int) -> DeviceMemory:
        """The memory of a parameter."""
        view = _abi.new(_abi.Tensor)
        self._call("step_parameter", self.handle, parameter, ctypes.byref(view))
        return DeviceMemory(view.data or 0, self._lifetime)

    def wait_for_parameters(self, stream: int | None) -> None:
        """Later work on |stream| finds all parameters updated."""
        self._call("step_parameter_wait", self.handle, -1, stream)

    def parameters_changed(self, parameters: Sequence[int], stream: int | None) -> int:
        """Takes over what was written to |parameters|; the number of elements."""
        elements = ctypes.c_int64()
        numbers = (ctypes.c_int32 * len(parameters))(*parameters)
        self._call(
            "step_parameters_changed",
            self.handle,
            numbers,
            len(parameters),
            stream,
            ctypes.byref(elements),
        )
        return elements.value

    def find_unit_of(self, parameter: int) -> int | None:
        """The unit of which this rank has a slice; None if it has the whole parameter."""
        unit = ctypes.c_int32()
        self._call("step_unit_of", self.handle, parameter, ctypes.byref(unit))
        return unit.value if unit.value >= 0 else None

    def prefetch(self, unit: int) -> None:
        self._call("step_prefetch", self.handle, unit)

    def unshard(self, unit: int, stream: int | None) -> None:
        self._call("step_unshard", self.handle, unit, stream)

    def reshard(self, unit: int, stream: int | None) -> None:
        self._call("step_reshard", self.handle, unit, stream)

    def begin_backward(self, hint: int) -> None:
        self._call("step_begin_backward", self.handle, hint)

    def gradients(
        self, parameters: list[int], tensors: list[_abi.Tensor], stream: int | None
    ) -> None:
        """Later work on |stream| may use the memory of |tensors| for something else."""
        count = len(parameters)
        self._call(
            "step_gradients",
            self.handle,
            (ctypes.c_int32 * count)(*parameters),
            (_abi.Tensor * count)(*tensors),
            count,
            stream,
            None,
        )

    def error(self, status: int) -> ZeroOptError:
        return self._runtime.error(status)

    def accumulate(self) -> None:
        self._call("step_accumulate", self.handle)

    def discard(self) -> None:
        self._call("step_discard", self.handle)

    def is_released(self, timepoint: int) -> bool:
        """Whether the runtime has read the tensor that it got until |timepoint|."""
        passed = ctypes.c_int32()
        status = self._runtime.functions["has_passed"](
            self._runtime_handle, timepoint, ctypes.byref(passed)
        )
        if status:
            raise self._runtime.error(status)
        return bool(passed.value)

    def apply(self, inputs: Sequence[float], stream: int | None) -> None:
        """Updates the parameters, and waits for no result."""
        values = (ctypes.c_double * len(inputs))(*inputs)
        self._call("step_apply", self.handle, values, len(inputs), stream)

    def wait_for_outcome(self) -> Outcome:
        """Of the last apply. A refused step raises."""
        results = _abi.new(_abi.Results)
        self._call("step_results", self.handle, ctypes.byref(results))
        return Outcome(
            results.outcome == _abi.SKIPPED_NONFINITE,
            tuple(results.values[i] for i in range(results.num_values)),
        )

    def read_loss_scale(self) -> float:
        scale = ctypes.c_double()
        self._call("step_loss_scale", self.handle, ctypes.byref(scale))
        return scale.value

    def list_state(self) -> list[StateEntry]:
        count = ctypes.c_int64()
        self._call("step_state_count", self.handle, ctypes.byref(count))
        entries = []
        for number in range(count.value):
            entry = _abi.new(_abi.StateEntry)
            self._call("step_state_describe", self.handle, number, ctypes.byref(entry))
            entries.append(
                StateEntry(
                    number,
                    entry.parameter if entry.parameter >= 0 else None,
                    entry.role.decode(),
                    _abi.DTYPE_NAMES[entry.dtype],
                    entry.begin,
                    entry.end,
                )
            )
        return entries

    def read_state(self, entry: StateEntry, address: int, size: int) -> None:
        self._call("step_state_read", self.handle, entry.number, address, size)

    def save(self, folder: bytes, number: int) -> None:
        self._call("step_save", self.handle, folder, number)

    def begin_save(self, folder: bytes, number: int) -> None:
        self._call("step_save_begin", self.handle, folder, number)

    def end_save(self) -> None:
        self._call("step_save_end", self.handle)

    def load(self, folder: bytes, within_step: bool = True) -> int:
        """Without |within_step|, a checkpoint that was saved within a step leads to the
        begin of that step."""
        number = ctypes.c_int64()
        call = "step_load" if within_step else "step_load_begin"
        self._call(call, self.handle, folder, ctypes.byref(number))
        return number.value

    def count_passes(self) -> int:
        """The closed backward passes since the last apply."""
        count = ctypes.c_int64()
        self._call("step_backward_passes", self.handle, ctypes.byref(count))
        return count.value

    def meet(self, work: str) -> None:
        """All ranks make this call before |work| that they do by torch.distributed: a rank
        that does something else is found at once."""
        self._call("step_meet", self.handle, work.encode())

    def write_state(self, entry: StateEntry, address: int, size: int) -> None:
        self._call("step_state_write", self.handle, entry.number, address, size)
