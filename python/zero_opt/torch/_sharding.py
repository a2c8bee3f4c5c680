# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When the units of ZeRO stage 3 are gathered and released.

A unit is unsharded while its forward pass runs, and while its backward pass runs. There is
memory for two units, and the memory of a unit has always the same address. So what autograd
has saved of a parameter in the forward pass is right again in the backward pass. A unit
that is kept has memory of its own, and stays unsharded from the forward to the backward
pass.

The backward pass of a unit begins when the gradient of one of its outputs is there, when
its forward pass runs again within a backward pass (activation checkpointing), or when
autograd reads the first of the tensors that the unit has saved. It ends
when the gradients of its inputs are there; they pass a function that is put before the
unit. If no input needs a gradient, it ends with the backward pass of the model. None of
this depends on which gradients a rank has, so all ranks make the same calls.

While a unit is used, the next one is gathered: the one that followed it in the last forward
pass, and backward the one before it. A wrong guess costs its bytes. If the step declares
the order of its units, another unit is an error.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad as fwAD
from torch.utils.hooks import RemovableHandle

from zero_opt._step import Step
from zero_opt.errors import ZeroOptError
from zero_opt.torch._aliases import Placed, has_no_values
from zero_opt.torch._arguments import Arguments, list_tensors
from zero_opt.torch._delivery import Delivery
from zero_opt.torch._device import Device
from zero_opt.torch._order import DeclaredOrder, UnitOrder
from zero_opt.torch._saved import SavedTensors, runs_backward
from zero_opt.torch._sharded_unit import Boundary, ShardedUnit
from zero_opt.torch._units import KeepAfterForward, Unit


class _RefuseToSave:
    """A hook of a unit whose optimizer is closed: a file of nan would be found too late. A
    model can be pickled with it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, module: nn.Module, *_: Any) -> None:
        if any(has_no_values(parameter) for parameter in module.parameters()):
            raise ZeroOptError(
                f"state_dict() of module '{self._name}', of which the closed optimizer has "
                "left no values; call consolidate_model() before close()"
            )


def _call_weakly(method: Callable[[], None]) -> Callable[[], None]:
    """|method|, as long as its object lives."""
    found = weakref.WeakMethod(method)

    def call() -> None:
        if (living := found()) is not None:
            living()

    return call


class Sharding:
    """All units of one optimizer."""

    def __init__(self, step: Step, device: Device, delivery: Delivery) -> None:
        self.units: list[ShardedUnit] = []
        # By number of the parameter.
        self._unit_of: dict[int, ShardedUnit] = {}
        self._step = step
        self._device = device
        self._delivery = delivery
        delivery.on_begin = _call_weakly(self._note_begin)
        delivery.on_end = _call_weakly(self.end_backward)
        self._order = UnitOrder()
        self._saved: dict[int, SavedTensors] = {}  # by number of the unit
        # The unit of which an exception has ended the backward pass in this step.
        self._cut_off: str | None = None
        self._handles: list[RemovableHandle] = []
        self._modules: list[tuple[weakref.ref[nn.Module], str]] = []
        # Whether the model's state_dict() is called to be completed.
        self._is_collecting = False

    def add(self, unit: Unit, entries: list[Placed]) -> None:
        """|entries| are those of the step."""
        sharded = [
            entry
            for entry in entries
            if entry.unit is not None and id(entry.parameter) in unit.parameters
        ]
        if not sharded or sharded[0].unit is None:
            return  # this rank is alone, and has all of them
        made = ShardedUnit(unit, sharded[0].unit, sharded)
        self.units.append(made)
        self._unit_of |= {entry.number: made for entry in sharded}
        self._hook(unit.module, made)

    def keep(self, which: KeepAfterForward) -> None:
        """The step was compiled so, too. Its last unit has the largest number."""
        units = sorted(self.units, key=lambda unit: unit.number)
        for unit in units if which is True else units[-1:] if which else []:
            unit.is_kept = True

    def declare_order(self) -> None:
        """The step was compiled so, too."""
        self._order = DeclaredOrder(unit.number for unit in self.units if unit.is_kept)

    def _hook(self, module: nn.Module, unit: ShardedUnit) -> None:
        own = weakref.ref(self)
        known = weakref.ref(module)

        def check_own(called: nn.Module) -> None:
            # A copy of a module has its hooks, and not its parameters.
            if called is not known():
                raise ZeroOptError(
                    f"module '{unit.name}' is a copy of a sharded one, so it has no "
                    "values; make a new model, and load into it what "
                    "optimizer.consolidate_model() has returned"
                )

        def begin() -> None:
            if (sharding := own()) is not None:
                sharding._enter_backward(unit)

        self._saved[unit.number] = SavedTensors(unit, begin)

        def before(called: nn.Module, args: Any, kwargs: Any) -> Any:
            check_own(called)
            sharding = own()
            return None if sharding is None else sharding._before(unit, args, kwargs)

        def after(called: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            if called is known() and (sharding := own()) is not None:
                sharding._after(unit, output)

        def refuse(call: str) -> None:
            sharding = own()
            if sharding is not None and not sharding._is_collecting:
                raise ZeroOptError(
                    f"{call}() of module '{unit.name}', of which a rank has slices only; "
                    "call optimizer.consolidate_model() for the whole state_dict, or "
                    "save_checkpoint() and load_checkpoint(); load a state_dict of the "
                    "model before the optimizer is created"
                )

        def refuse_save(called: nn.Module, *_: Any) -> None:
            check_own(called)
            refuse("state_dict")

        def refuse_load(called: nn.Module, *_: Any) -> None:
            check_own(called)
            refuse("load_state_dict")

        any_module: Any = module  # torch has no types for some of these
        self._modules.append((weakref.ref(module), unit.name))
        # torch.compile of the model would make the calls once, and at compile time.
        outside: Any = torch.compiler.disable
        self._handles += [
            # Hooks that were registered before find the parameters, too.
            module.register_forward_pre_hook(
                outside(before), prepend=True, with_kwargs=True
            ),
            module.register_forward_hook(
                outside(after), with_kwargs=True, always_call=True
            ),
            any_module.register_state_dict_pre_hook(refuse_save),
            any_module._register_load_state_dict_pre_hook(refuse_load, with_module=True),
        ]

    def _before(self, unit: ShardedUnit, args: Any, kwargs: Any) -> Any:
        if fwAD._current_level >= 0:
            raise ZeroOptError(
                f"unit '{unit.name}' is called in forward-mode differentiation, such as "
                "torch.func.jvp, which knows no units of stage 3; give zero=2"
            )
        unit.depth += 1
        unit.arguments.append(None)
        unit.has_hooks.append(False)
        if runs_backward():
            self._enter_backward(unit)
        elif unit.depth == 1:
            self.end_backward()  # an exception has ended that pass
            self._delivery.give_up()
            if not unit.is_unsharded:  # kept since a pass without a backward pass
                self._unshard(unit)
            self._order.note(unit.number)
            self._prefetch(self._order.next.get(unit.number))
        if not torch.is_grad_enabled():
            return None
        own = weakref.ref(self)

        def end() -> None:
            if (sharding := own()) is not None:
                sharding._leave_backward(unit)

        replace = functools.partial(Boundary.apply, end)
        unit.arguments[-1] = arguments = Arguments((args, kwargs), replace)
        unit.has_hooks[-1] = self._saved[unit.number].push()
        return arguments.values

    def _after(self, unit: ShardedUnit, output: Any) -> None:
        if not unit.depth:
            return  # a hook before ours has raised
        unit.depth -= 1
        if unit.has_hooks.pop():
            self._saved[unit.number].pop()
        if (arguments := unit.arguments.pop()) is not None:
            arguments.write_back()
        try:
            self._check_output(unit, output)
        finally:
            is_needed = unit.is_in_backward or (unit.is_kept and torch.is_grad_enabled())
            if not unit.depth and unit.is_unsharded and not is_needed:
                self._reshard(unit)
        if not torch.is_grad_enabled():
            return
        own = weakref.ref(self)

        def begin(_: Any) -> None:
            if (sharding := own()) is not None:
                sharding._enter_backward(unit)

        # A hook of the tensor would go if the tensor is written in place.
        for tensor in list_tensors(output):
            node = tensor.grad_fn
            # An input that is an output is no work of the unit.
            if node is not None and node.name() != "BoundaryBackward":
                node.register_prehook(begin)

    def _check_output(self, unit: ShardedUnit, output: Any) -> None:
        for tensor in list_tensors(output):
            if unit.find_name(tensor) is not None:
                raise ZeroOptError(
                    f"unit '{unit.name}' returns a parameter or a view of one, whose "
                    "memory other units get when it is released; return a clone()"
                )

    def _enter_backward(self, unit: ShardedUnit) -> None:
        if unit.is_in_backward or (unit.is_unsharded and not unit.is_kept):
            return
        # Once it is released, a unit takes no more gradients of a pass. If the graph has
        # the unit twice, they arrive in another pass of the step. Passes are summed.
        self._delivery.begin(unit.has_ended)
        if not unit.is_unsharded:
            self._unshard(unit)
        self._prefetch(self._order.previous.get(unit.number))
        unit.is_in_backward = True

    def _leave_backward(self, unit: ShardedUnit) -> None:
        if not unit.is_in_backward:
            return
        self._delivery.flush()
        unit.is_in_backward = False
        unit.has_ended = True
        self._reshard(unit)

    def _note_begin(self) -> None:
        """A backward pass of the step has begun."""
        self._order.end_pass()
        if self._delivery.passes == 1:
            self._cut_off = None
        for unit in self.units:
            unit.has_ended = False

    def end_backward(self) -> None:
        """The model's backward pass has ended, or an exception has ended it."""
        is_cut_off = self._delivery.awaits_end
        for unit in reversed(self.units):
            if is_cut_off and unit.is_in_backward:
                self._cut_off = self._cut_off or unit.name
            self._leave_backward(unit)

    def check_ended(self) -> None:
        """Before a step: refuses gradients of a backward pass that has not ended."""
        if self._cut_off is not None:
            raise ZeroOptError(
                f"step() behind a backward pass that did not end: unit '{self._cut_off}' "
                "was left gathered, and its gradients were not reduced; call step() after "
                "backward(), and zero_grad() after an exception in backward()"
            )

    def end_all(self) -> None:
        """As end_backward. A forward pass that the user interrupted has ended, too."""
        self.end_backward()
        for unit in self.units:
            unit.depth = 0
            unit.arguments.clear()
            if any(unit.has_hooks):
                self._saved[unit.number].pop()
            unit.has_hooks.clear()
            if unit.is_unsharded:
                self._reshard(unit)

    def make_check(self, entry: Placed) -> Callable[[], None] | None:
        """What refuses a gradient of |entry| that arrives at another time."""
        if entry.number not in self._unit_of:
            return None
        # The hook of a parameter keeps no parameter alive.
        own, name, number = weakref.ref(self), entry.name, entry.number

        def check() -> None:
            if (sharding := own()) is not None:
                sharding._note_arrival(name, sharding._unit_of[number])

        return check

    def _note_arrival(self, name: str, unit: ShardedUnit) -> None:
        if not unit.is_unsharded:
            raise ZeroOptError(
                f"the gradient of parameter '{name}' arrives while its unit '{unit.name}' "
                "is sharded: the parameter was used outside of the unit's forward(), or "
                "the loss uses something else than the unit's outputs; make the module "
                "that does this a unit, or leave this one out"
            )
        # If the unit is kept, nothing else may have told its backward pass.
        self._enter_backward(unit)

    def _unshard(self, unit: ShardedUnit) -> None:
        self._device.check_no_capture()
        try:
            self._step.unshard(unit.number, self._device.stream)
        except ZeroOptError as error:
            others = ", ".join(f"'{u.name}'" for u in self.units if u.is_unsharded)
            if isinstance(self._order, DeclaredOrder):
                raise ZeroOptError(
                    f"{error}; unit_order='declared' is the order of model.modules(), so "
                    "leave it out if the model uses its units in another one"
                ) from error
            if error.status != "protocol" or not others:
                raise
            raise ZeroOptError(
                f"unit '{unit.name}' is needed besides {others}, and there is memory for "
                "two units that are neighbours; put one unit into each segment of "
                "activation checkpointing, call no unit from another, and let the inputs "
                "of a unit need gradients, as arguments or in tuples, lists and dicts: "
                "otherwise it is released at the end of the pass"
            ) from error
        unit.is_unsharded = True
        unit.attach(self._step, self._device)

    def _prefetch(self, unit: int | None) -> None:
        if unit is not None:
            self._step.prefetch(unit)

    def _reshard(self, unit: ShardedUnit) -> None:
        unit.detach()
        unit.is_unsharded = False
        if self._device.has_autocast():
            # It would keep the parameters in another type until it ends.
            torch.clear_autocast_cache()
        self._step.reshard(unit.number, self._device.stream)

    def list_state(self, model: nn.Module) -> dict[str, Any]:
        """The state_dict() of |model|, in which parameters of units have no values."""
        self._is_collecting = True
        try:
            return model.state_dict(keep_vars=True)
        finally:
            self._is_collecting = False

    def collect(
        self,
        model: nn.Module,
        keeps: bool,
        read_exact: Callable[[Placed], torch.Tensor | None],
    ) -> dict[str, torch.Tensor]:
        """The whole state_dict() of |model| on ranks where |keeps|. All ranks gather.
        |read_exact| has the values of a parameter that travels rounded, or None."""
        state = self.list_state(model) if keeps else {}
        sharded = {id(e.parameter) for unit in self.units for e in unit.entries}
        # By id, so that tied parameters stay tied.
        copies = {
            id(value): value.detach().to("cpu", copy=True)
            for value in state.values()
            if isinstance(value, torch.Tensor) and id(value) not in sharded
        }
        for unit in self.units:
            self._unshard(unit)
            try:
                for entry in unit.entries:
                    whole = read_exact(entry)
                    if whole is None and keeps:
                        whole = entry.parameter.detach().to("cpu", copy=True)
                    if whole is not None:
                        copies[id(entry.parameter)] = whole
            finally:
                self._reshard(unit)
        for name, value in state.items():
            state[name] = copies.get(id(value), value)
        return state

    def release(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for found, name in self._modules:
            module: Any = found()
            if module is not None:
                module.register_state_dict_pre_hook(_RefuseToSave(name))
        self.units.clear()
        self._unit_of.clear()
        self._saved.clear()
