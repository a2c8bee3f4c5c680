# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters of the model use the memory of the step, and stay there.

Code of others writes to parameters, moves them or puts new ones in their place:
`load_state_dict`, `.to()`, init functions. `find_replaced` finds what is another parameter
before each step. Before the step is applied, `move_back` finds what was moved, and
`take_writes` what was written. The model would otherwise go on with memory that no step
updates, or a master weight would overwrite what was written.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from zero_opt._step import Step
from zero_opt.errors import ZeroOptError
from zero_opt.torch._device import Device
from zero_opt.torch._parameters import DTYPES, Slot


@dataclasses.dataclass
class Placed:
    """A parameter with memory of the step: one that the step updates, or a frozen one of a
    unit."""

    name: str
    parameter: torch.Tensor
    number: int
    view: torch.Tensor  # of the step's memory
    pointer: int
    slots: list[Slot]
    # Of stage 3. The parameter has memory of the step while the unit is unsharded, and else
    # that of |view|, which has the shape of the parameter and no values.
    unit: int | None = None
    version: int = 0  # torch's count of writes to the parameter, as far as taken over
    unsharded: torch.Tensor | None = None  # of the step's memory, while the unit is
    is_frozen: bool = False
    users: int = 0  # of the memory of |view|, where the parameter is one and no other is

    def is_in_place(self) -> bool:
        parameter = self.parameter
        return (
            parameter.data_ptr() == self.pointer
            and parameter.shape == self.view.shape
            and parameter.stride() == self.view.stride()
            and parameter.dtype is self.view.dtype
        )

    def is_written(self) -> bool:
        """Whether others have written to it, as far as torch knows."""
        return self.version != self.parameter._version


# Which optimizer has a parameter, by the id of the parameter. An optimizer keeps its
# parameters alive, so an id of a living optimizer is no other parameter's.
_owners: dict[int, weakref.ref[Aliases]] = {}


# Parameters of units, of which closed optimizers have left no values.
_without_values: Any = WeakIdKeyDictionary()


def has_no_values(parameter: torch.Tensor) -> bool:
    """Whether a closed optimizer has left |parameter| so, and nobody has written it."""
    return parameter in _without_values and bool(parameter.isnan().all())


def list_open() -> list[Aliases]:
    """Of all optimizers that are open."""
    found = {id(aliases): aliases for owner in _owners.values() if (aliases := owner())}
    return [aliases for aliases in found.values() if not aliases.is_released]


def find_owner(parameter: torch.Tensor) -> Aliases | None:
    """Whose memory |parameter| uses, if an open optimizer has it."""
    owner = _owners.get(id(parameter))
    aliases = owner() if owner else None
    return None if aliases is None or aliases.is_released else aliases


def check_free(name: str, parameter: torch.Tensor) -> None:
    """Refuses a parameter that another optimizer has, or has left without values."""
    if has_no_values(parameter):
        raise ZeroOptError(
            f"parameter '{name}' has no values since an optimizer of stage 3 was closed; "
            "call consolidate_model() of that one before, and then "
            "model.load_state_dict(state, assign=True) on all ranks"
        )
    aliases = find_owner(parameter)
    if aliases is None:
        return
    remedy = "close() that one first"
    if any(entry.unit is not None for entry in aliases.placed):
        remedy = (
            "call consolidate_model() and close() of that one first, since it leaves "
            "parameters of units without values"
        )
    raise ZeroOptError(
        f"parameter '{name}' belongs to another zero_opt optimizer; {remedy}, or pass all "
        "parameters to one optimizer as parameter groups"
    )


def _count_users(tensor: torch.Tensor) -> int:
    """The number of tensors in the memory of |tensor|, and some more that stay; 0 if torch
    does not tell."""
    count: Any = getattr(torch._C, "_storage_Use_Count", None)
    return int(count(tensor.untyped_storage()._cdata)) if count and tensor.numel() else 0


def _make_empty(like: torch.Tensor) -> torch.Tensor:
    """A tensor with the shape of |like| and without values: torch refuses to write to
    it, and a result is nan."""
    return torch.full((), float("nan"), dtype=like.dtype, device=like.device).expand(
        like.shape
    )


def _find_place(tensor: torch.Tensor) -> tuple[str, int]:
    """cpu and cpu:0 are one device, and `.to()` copies from one to the other."""
    return tensor.device.type, tensor.device.index or 0


def put_back(entry: Placed) -> bool:
    """Whether the parameter of a unit, which is sharded, has no values, as the optimizer
    left it. What only moved it is undone."""
    parameter, view = entry.parameter, entry.view
    if parameter.data_ptr() == entry.pointer:
        return True
    if (
        parameter.dtype is not view.dtype
        or parameter.shape != view.shape
        or _find_place(parameter) != _find_place(view)
        or not parameter.isnan().all()
    ):
        return False
    parameter.data = view
    return True


class Aliases:
    """All parameters of one optimizer that have memory of the step."""

    def __init__(
        self,
        step: Step,
        device: Device,
        on_replaced: Callable[[Placed, torch.Tensor], None],
    ) -> None:
        self.trained: list[Placed] = []
        self.frozen: list[Placed] = []  # of units
        self.is_released = False
        self._step = step
        self._device = device
        self._on_replaced = on_replaced

    @property
    def placed(self) -> list[Placed]:
        return [*self.trained, *self.frozen]

    def add(
        self, name: str, parameter: torch.Tensor, slots: list[Slot], is_frozen: bool
    ) -> None:
        """Binds |parameter|, which from now on uses the step's memory."""
        number = self._step.find_parameter(name)
        values = parameter.detach().contiguous()
        if values.data_ptr() != parameter.data_ptr():
            self._device.synchronize()
        self._bind(number, values)
        unit = self._step.find_unit_of(number)
        view = self._make_view(number, values) if unit is None else _make_empty(values)
        parameter.data = view
        entry = Placed(
            name, parameter, number, view, view.data_ptr(), slots, unit, parameter._version
        )
        entry.is_frozen = is_frozen
        entry.users = _count_users(view)
        (self.frozen if is_frozen else self.trained).append(entry)
        _owners[id(parameter)] = weakref.ref(self)

    def _make_view(self, number: int, like: torch.Tensor) -> torch.Tensor:
        return self._device.view(self._step.get_memory(number), like)

    def write(
        self, tensor: torch.Tensor, entry: Placed | None, values: torch.Tensor
    ) -> None:
        """Gives a tensor of the model |values|, on all ranks. |entry| is that of a
        parameter with memory of the step."""
        if entry is None or entry.unit is None:
            with torch.no_grad():
                tensor.copy_(values)
        else:
            self._bind(entry.number, values)

    def _bind(self, number: int, values: torch.Tensor) -> None:
        dtype = DTYPES[values.dtype]
        self._step.bind(number, dtype, values.numel(), values.data_ptr())

    def find_replaced(self) -> list[Placed]:
        """Between steps: finds parameters that are other ones now, and returns them. A
        script may put them elsewhere for a while: see move_back()."""
        replaced = []
        for entry in self.placed:
            if entry.unit is not None:
                self._check_unit(entry)
                continue
            for slot in entry.slots:
                found = slot.get()
                if found is not None and found is not entry.parameter:
                    self._replace(entry, found)
                    replaced.append(entry)
            if not entry.is_in_place():
                self._check_type(entry, entry.parameter)
        return replaced

    def take_writes(self) -> None:
        """What others have written becomes the state, from which the next update starts."""
        # A write to `.data` leaves no trace in torch. The step finds it in the bits. The
        # bits of a GPU would have to be copied to the CPU.
        self._take_writes(
            [
                entry
                for entry in self.trained
                if not self._device.is_queued or entry.is_written()
            ]
        )

    def _check_unit(self, entry: Placed) -> None:
        """A rank has a slice of the parameter, so others cannot change it."""
        what = None
        found = [slot.get() for slot in entry.slots]
        if any(p is not None and p is not entry.parameter for p in found):
            what = "was replaced"
        elif entry.parameter.dtype is not entry.view.dtype:
            what = f"has dtype {entry.parameter.dtype}, and had {entry.view.dtype}"
        elif _find_place(entry.parameter) != _find_place(entry.view):
            what = f"is on {entry.parameter.device}, and was on {entry.view.device}"
        elif entry.is_written() or not self._has_own_values(entry):
            what = "was written"
        if what:
            raise ZeroOptError(
                f"parameter '{entry.name}' of a unit {what}, and each rank has a slice of "
                "it only; change parameters of units before the optimizer is created"
            )

    def _has_own_values(self, entry: Placed) -> bool:
        """Whether a parameter of a unit has the gathered values, or still none. A read of
        a GPU would wait for it."""
        if entry.unsharded is not None:
            return entry.parameter.data_ptr() == entry.unsharded.data_ptr()
        if not put_back(entry):
            return False
        if self._device.is_queued or not entry.view.numel():
            return True
        return bool(entry.view.reshape(-1)[0].isnan())

    def expect_writes(self) -> None:
        """The next step compares all parameters with its state."""
        for entry in self.trained:
            if entry.unit is None:
                entry.version = -1

    def note_step(self) -> None:
        """The step has written to all parameters. torch then refuses a backward pass of a
        graph from before the step."""
        for entry in self.trained:
            torch.autograd.graph.increment_version(entry.parameter)
            entry.version = entry.parameter._version

    def take_all_writes(self) -> int:
        """As take_writes, for writes that torch does not count. Returns the number of
        elements that this rank takes over."""
        return self._take_writes(self.trained)

    def _take_writes(self, entries: list[Placed]) -> int:
        entries = [entry for entry in entries if entry.unit is None]
        if not entries:
            return 0
        for entry in entries:
            entry.version = entry.parameter._version
        return self._step.parameters_changed(
            [entry.number for entry in entries], self._device.stream
        )

    def check_not_replaced(self) -> None:
        """Within a step: no parameter is another one, whose gradients would be missing."""
        for entry in self.placed:
            if entry.unit is not None:
                self._check_unit(entry)
                continue
            for slot in entry.slots:
                if slot.get() is not entry.parameter and slot.get() is not None:
                    raise ZeroOptError(
                        f"parameter '{entry.name}' was replaced after a backward pass and "
                        "before step(); do that after step() and before the next backward "
                        "pass"
                    )
            if not entry.is_in_place():
                self._check_type(entry, entry.parameter)

    def move_back(self, call: str) -> None:
        """Before |call|, which uses the memory of the step: parameters are there again,
        with the values that they have."""
        for entry in self.placed:
            if entry.unit is None and not entry.is_in_place():
                self._move_back(entry, call)

    def release(self) -> None:
        """Gives the parameters memory of their own. Those of units stay without values: to
        gather them all ranks would have to make this call."""
        if self.is_released:
            return
        self.is_released = True
        self._device.synchronize()  # the step may still write
        for entry in self.placed:
            if _owners.pop(id(entry.parameter), None) is None:
                continue
            if entry.unit is not None:
                _without_values[entry.parameter] = True
            elif entry.is_in_place():
                entry.parameter.data = entry.view.clone()
        self._device.synchronize()  # the memory may go
        self.trained.clear()
        self.frozen.clear()
        self._step.release()

    def _check_type(self, entry: Placed, parameter: torch.Tensor) -> None:
        for what, now, then in (
            ("dtype", parameter.dtype, entry.view.dtype),
            ("shape", tuple(parameter.shape), tuple(entry.view.shape)),
            ("device", parameter.device, entry.view.device),
        ):
            if now != then:
                raise ZeroOptError(
                    f"parameter '{entry.name}' has {what} {now}, and had {what} {then} "
                    "when the optimizer was created; create the optimizer after such a "
                    "change"
                )

    def _replace(self, entry: Placed, parameter: torch.Tensor) -> None:
        """A module has another parameter now, as after load_state_dict(assign=True)."""
        self._check_type(entry, parameter)
        for slot in entry.slots:
            if slot.get() is not parameter:
                raise ZeroOptError(
                    f"parameter '{entry.name}' was tied to '{slot.name}', and they are "
                    "two parameters now; tie them again, or create a new optimizer"
                )
        check_free(entry.name, parameter)
        _owners.pop(id(entry.parameter), None)
        if entry.is_in_place():
            # The script may keep it, and put it back.
            entry.parameter.data = entry.view.clone()
        self._on_replaced(entry, parameter)
        entry.parameter = parameter
        entry.version = parameter._version - 1
        _owners[id(parameter)] = weakref.ref(self)

    def _has_other_users(self, entry: Placed) -> bool:
        """Whether a tensor of the script uses the memory that the parameter has left."""
        place = entry.view.untyped_storage().data_ptr()
        # A transposed view has not left it.
        has_left = entry.parameter.untyped_storage().data_ptr() != place
        return _count_users(entry.view) > entry.users - has_left

    def _move_back(self, entry: Placed, call: str) -> None:
        self._check_type(entry, entry.parameter)
        # share_memory() moves the storage of all tensors that use it.
        was_shared = entry.view.data_ptr() != entry.pointer
        if not was_shared and self._has_other_users(entry):
            raise ZeroOptError(
                f"parameter '{entry.name}' was given other memory, and a tensor of the "
                f"script uses the memory of before, to which {call}() writes; keep a "
                f"clone() of .data, or give the memory back before {call}()"
            )
        values = entry.parameter.detach()
        if was_shared:
            entry.view = self._make_view(entry.number, values)
        with torch.no_grad():
            # They may be another view of the same memory, such as a transposed one.
            entry.view.copy_(values.clone())
        entry.parameter.data = entry.view
        entry.version = entry.parameter._version - 1
