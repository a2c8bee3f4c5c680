# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A torch.optim.Optimizer whose step is a compiled one."""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from zero_opt import _abi
from zero_opt._step import Outcome
from zero_opt.errors import ZeroOptError
from zero_opt.torch import _ranks
from zero_opt.torch._aliases import Aliases, Placed, check_free
from zero_opt.torch._delivery import Delivery
from zero_opt.torch._description import (
    Listed,
    LossScale,
    Offload,
    check_arguments,
    check_frozen_travel,
    check_max_norm,
    check_narrow,
    check_unknown,
    describe_step,
    list_trained,
    list_with_frozen,
)
from zero_opt.torch._device import find_device
from zero_opt.torch._files import FileCheckpoints, refuse_within_step
from zero_opt.torch._gradients import check_last_hooks, check_not_written
from zero_opt.torch._groups import Groups, check_frozen
from zero_opt.torch._parameters import Params, Slot, list_groups, list_slots, refuse_wrapped
from zero_opt.torch._sharding import Sharding
from zero_opt.torch._source import Weights
from zero_opt.torch._state import State
from zero_opt.torch._state_dicts import StateDicts
from zero_opt.torch._storages import check_storages
from zero_opt.torch._units import (
    KeepAfterForward,
    Unit,
    Units,
    check_units,
    find_units,
)
from zero_opt.torch._weights import Values
from zero_opt.torch._written import complete


def _release(
    handles: dict[int, RemovableHandle], aliases: Aliases, sharding: Sharding
) -> None:
    for handle in handles.values():
        handle.remove()
    handles.clear()
    sharding.release()
    aliases.release()


class CompiledOptimizer(FileCheckpoints, StateDicts):
    """The base of all optimizers; see zero_opt.torch.optimizers for the arguments."""

    def __init__(
        self,
        params: Params,
        defaults: Mapping[str, Any],
        *,
        max_norm: float | None = None,
        loss_scale: LossScale = None,
        one_backward: bool = False,
        zero: int = 1,
        offload: Offload = False,
        keep_after_forward: KeepAfterForward = False,
        unit_order: str = "calls",
        prefetch_units: int = 1,
        reduce: str = "backward",
        accumulate: str = "in-place",
        gather_dtype: torch.dtype | None = None,
        process_group: Any = None,
        timeout: float = 1800.0,
        model: nn.Module | None = None,
        units: Units = None,
        whole_below: int = 0,
        weights: Weights | None = None,
        device: Any = None,
        **others: Any,
    ) -> None:
        check_unknown(type(self).__name__, others)
        self.recipe.check_values("", defaults)
        if isinstance(params, nn.Module):
            model = params
        elif model is not None:
            refuse_wrapped(model)
        groups = list_groups(params)
        check_arguments(
            type(self).__name__,
            self.recipe,
            groups,
            max_norm,
            zero,
            loss_scale,
            offload,
            keep_after_forward,
            unit_order,
            prefetch_units,
            reduce,
            accumulate,
            one_backward,
            gather_dtype,
            timeout,
        )
        check_units(units, zero, model, whole_below)
        values = Values(weights, device, groups, model)
        self._is_complete = False
        super().__init__(
            [{"params": [p for _, p in g.params], **g.options} for g in groups],
            dict(defaults),
        )
        self._is_complete = True
        # As torch's optimizers have them since version 2.6.
        for group, listed in zip(self.param_groups, groups, strict=True):
            group["param_names"] = [name for name, _ in listed.params]
        self._groups = Groups(self.param_groups)
        self.stage = zero  # of ZeRO
        self._max_norm = max_norm
        self._outcome: Outcome | None = None
        self._has_warned = False  # of zero_grad(set_to_none=False)
        # Empty before the first step, and after state was loaded.
        self._last_inputs: list[float] = []
        # Whether a GPU may still work on the last step.
        self._is_pending = False
        self._ranks = ranks = _ranks.find_ranks(process_group)
        # Nothing travels where a rank is alone.
        self._gather_dtype = gather_dtype if ranks.size > 1 else None
        values.check(ranks)
        self._frozen = [
            named for g in groups for named in g.params if not named[1].requires_grad
        ]
        named = list_trained(groups)
        check_narrow(named, accumulate)
        check_storages([(name, p) for _, name, p in named], self._frozen, model)
        self._device = find_device((n, values.find_device(p)) for _, n, p in named)
        found: list[Unit] = []
        if units is not None and model is not None:
            place = values.find_device(named[0][2])
            found, frozen = find_units(
                units,
                model,
                [parameter for _, _, parameter in named],
                lambda parameter: values.find_device(parameter) == place,
                whole_below,
            )
            if ranks.size == 1 and not offload:
                frozen = []  # a rank that is alone keeps them whole
            for name, parameter in frozen:
                check_free(name, parameter)
            check_frozen_travel(frozen, self._gather_dtype)
            named = list_with_frozen(named, frozen, found)
            known = {id(parameter) for _, parameter in self._frozen}
            self._frozen += [named for named in frozen if id(named[1]) not in known]
        # The compiler has the groups in the order of their first parameters.
        self._trained_groups = list(
            dict.fromkeys(group for group, _, _ in named if group is not None)
        )
        description = describe_step(
            self.recipe,
            named,
            found,
            max_norm is not None,
            loss_scale,
            one_backward,
            ranks.size,
            zero,
            offload,
            keep_after_forward,
            unit_order,
            prefetch_units,
            reduce,
            accumulate,
            self._gather_dtype,
            self._device.target,
        )
        library = _ranks.compile_together(description, ranks)
        values.find_all(ranks)
        self._device.make_room()
        self._step = _ranks.open_step(
            library,
            _ranks.connect(ranks, timeout),
            self._device.place,
            self._device.choose_threads(bool(offload)),
            timeout,
        )
        self.recipe = complete(self.recipe, self._step, ranks)
        expected = [
            f"group{number}.{hyper}"
            for number in self._trained_groups
            for hyper in self.recipe.hyper
        ]
        if self._step.inputs != expected + ["max_norm"] * (max_norm is not None):
            raise ZeroOptError(
                f"the compiled step has the inputs {self._step.inputs}, which this package "
                "does not know; build package and compiler from one version"
            )
        self._place(named, model, found, values)
        self._sharding.keep(keep_after_forward)
        if unit_order == "declared":
            self._sharding.declare_order()
        self._delivery.needs_scale = loss_scale is not None
        self._delivery.takes_one_pass = one_backward

    def _place(
        self,
        named: list[Listed],
        model: nn.Module | None,
        units: list[Unit],
        values: Values,
    ) -> None:
        """Moves the parameters to the step's memory, with rank 0's values. Buffers get
        them, too, as with DistributedDataParallel."""
        values.share(
            [parameter for _, _, parameter in named],
            [parameter for _, parameter in self._frozen],
            model,
            self._ranks,
        )
        self._device.synchronize()
        own = weakref.ref(self)

        def before_pass(is_first: bool, arriving: int | None) -> list[Placed]:
            optimizer = own()
            return [] if optimizer is None else optimizer._prepare_pass(is_first, arriving)

        def on_replaced(entry: Placed, parameter: torch.Tensor) -> None:
            if (optimizer := own()) is not None:
                optimizer._replace(entry, parameter)

        self._delivery = Delivery(self._step, self._device, before_pass)
        self._aliases = Aliases(self._step, self._device, on_replaced)
        self._handles: dict[int, RemovableHandle] = {}
        places: dict[int, list[Slot]] = {}
        for slot in list_slots(model) if model is not None else []:
            places.setdefault(id(slot.get()), []).append(slot)
        for number, name, parameter in named:
            values.fill(parameter)
            slots = places.get(id(parameter), [])
            self._aliases.add(name, parameter, slots, is_frozen=number is None)
        self._sharding = Sharding(self._step, self._device, self._delivery)
        self._model = None if model is None else weakref.ref(model)
        for unit in units:
            self._sharding.add(unit, self._aliases.placed)
        for entry in self._aliases.trained:
            self._add_hook(entry, entry.parameter)
        self._state = State(self._step, self._aliases.trained, self.recipe, self.stage == 3)
        self._finalizer = weakref.finalize(
            self, _release, self._handles, self._aliases, self._sharding
        )
        # When a program ends, the parameters go with it.
        self._finalizer.atexit = False

    def _add_hook(self, entry: Placed, parameter: torch.Tensor) -> None:
        register: Any = parameter.register_post_accumulate_grad_hook
        check = self._sharding.make_check(entry)
        self._handles[entry.number] = register(self._delivery.make_hook(entry, check))

    def _replace(self, entry: Placed, parameter: torch.Tensor) -> None:
        self._groups.replace(self.param_groups, entry.parameter, parameter)
        self._handles[entry.number].remove()
        self._add_hook(entry, parameter)

    def _prepare_pass(self, is_first: bool, arriving: int | None) -> list[Placed]:
        """Returns the parameters that were replaced. |arriving| is the number of the one
        whose gradient begins the pass, if one does."""
        check_frozen(self._frozen)
        if not is_first:
            self._aliases.check_not_replaced()
            check_not_written(self._aliases.trained, arriving)
            return []
        check_last_hooks(self._aliases.trained, self._handles)
        self._wait_for_outcome()
        return self._aliases.find_replaced()

    def _check_open(self) -> None:
        if self._aliases.is_released:
            raise ZeroOptError("the optimizer was closed; create a new one")

    def _read_inputs(self) -> list[float]:
        """In the order of the recipe: by parameter group, then max_norm."""
        inputs = [
            value
            for number in self._trained_groups
            for value in self.recipe.read_inputs(number, self.param_groups[number])
        ]
        self.recipe.check_switches(self._trained_groups, self._last_inputs, inputs)
        return inputs if self._max_norm is None else [*inputs, float(self._max_norm)]

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        self._check_open()
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._groups.check(self.param_groups)
        self._state.copies.check()
        self._sharding.end_all()
        if self._delivery.passes:
            self._sharding.check_ended()
            check_frozen(self._frozen)
            self._aliases.check_not_replaced()
            check_not_written(self._aliases.trained)
        else:
            # All ranks make the same calls, also where one of them has no gradient.
            self._delivery.begin_empty()
            # Those that the caller wrote, and those of a model of which all parameters
            # were replaced.
            for entry in self._aliases.trained:
                self._delivery.deliver_late(entry)
            if not self._delivery.has_gradients:
                warnings.warn(
                    "step() without a backward pass: no parameter changes"
                    + (", unless another rank made one" if self._ranks.size > 1 else ""),
                    stacklevel=4,
                )
        self._aliases.move_back("step")
        inputs = self._read_inputs()
        self._device.check_no_capture()
        self._delivery.flush()
        stream = self._device.stream
        # The gradients are those of the weights before a write, as in torch.
        self._aliases.take_writes()
        try:
            self._step.apply(inputs, stream)
            self._last_inputs = inputs
            self._is_pending = True
            self._step.wait_for_parameters(stream)
            self._aliases.note_step()
            # A GPU works on while the caller does what comes next.
            if not self._device.is_queued:
                self._wait_for_outcome()
        finally:
            self._delivery.reset()
        return loss

    def _wait_for_outcome(self) -> None:
        if self._is_pending:
            self._is_pending = False
            self._outcome = None
            self._outcome = self._step.wait_for_outcome()

    @property
    def grad_norm(self) -> float | None:
        """The norm of all gradients of the last step, before clipping. Waits for the step
        if a GPU works on it."""
        self._wait_for_outcome()
        return self._outcome.values[0] if self._outcome else None

    @property
    def step_was_skipped(self) -> bool:
        """Whether the last step changed nothing because a gradient was not finite. Waits
        for the step if a GPU works on it."""
        self._wait_for_outcome()
        return self._outcome is not None and self._outcome.was_skipped

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients since the last step, on every rank that calls this. It sets
        them to None in any case."""
        if not set_to_none and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "zero_grad(set_to_none=False) sets gradients to None: a parameter that "
                "gets no gradient is left out of the step, and not updated with zeros",
                stacklevel=2,
            )
        super().zero_grad(set_to_none=True)
        self._sharding.end_all()
        if self._delivery.passes:
            self._delivery.discard()

    def parameters_changed(self) -> int:
        """Takes over what was written to parameters since the last step, and returns the
        number of elements of which this rank has the master weights. Only a write on a GPU
        through `.data` needs this call: the optimizer finds all others."""
        self._check_open()
        self._aliases.move_back("parameters_changed")
        return self._aliases.take_all_writes()

    @property
    def loss_scale(self) -> float:
        """The factor of `scale` until the next step; 1 without a loss scale."""
        return self._step.read_loss_scale()

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """|loss| times the loss scale, as torch.amp.GradScaler.scale. The step divides by
        it. Each backward pass needs a loss of its own that is scaled."""
        if not self._delivery.needs_scale:
            return loss
        # A tensor, so that the loss becomes float32.
        scaled = loss * torch.tensor(self.loss_scale, device=loss.device)
        if scaled.requires_grad:
            register: Any = scaled.register_hook
            register(self._delivery.note_scaled)
        return scaled

    @property
    def max_norm(self) -> float | None:
        """The norm to which gradients are clipped. It may change between steps."""
        return self._max_norm

    @max_norm.setter
    def max_norm(self, value: float | None) -> None:
        if (value is None) != (self._max_norm is None):
            raise ZeroOptError(
                f"max_norm is {self._max_norm} and cannot become {value}: the step was "
                "compiled with clipping or without; create a new optimizer"
            )
        check_max_norm(value)
        self._max_norm = value

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A hint: backward passes in this context are not the last ones of a step."""
        self._delivery.hint = _abi.HINT_MORE
        try:
            yield
        finally:
            self._delivery.hint = _abi.HINT_UNKNOWN

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if self._is_complete:
            raise ZeroOptError(
                "a compiled step has the parameters that it was compiled for; create a "
                "new optimizer with all parameter groups"
            )
        super().add_param_group(param_group)

    @property
    def _step_supports_amp_scaling(self) -> bool:
        # GradScaler.step reads this, and nothing else does.
        raise ZeroOptError(
            "GradScaler scales gradients in .grad, and this optimizer takes gradients "
            "before; give the optimizer loss_scale='dynamic', and call "
            "optimizer.scale(loss).backward() and optimizer.step() without a GradScaler"
        )

    @property
    def state(self) -> Any:
        """A copy of the state of this rank by parameter. torch.distributed.checkpoint makes
        a step with gradients of zeros if it is empty."""
        return self._state if self._is_complete else {}

    @state.setter
    def state(self, _: Any) -> None:
        # torch sets it when an optimizer is created.
        if self._is_complete:
            raise ZeroOptError(
                "optimizer.state cannot be set, since the compiled step has the state; "
                "call load_state_dict(), or create a new optimizer"
            )

    def _prepare_files(self, call: str, *, within_step: bool = False) -> None:
        if within_step and self._delivery.passes:
            self._check_open()
            self._close_pass(call)
        else:
            self._prepare_state(call)
            self._aliases.find_replaced()
            self._aliases.move_back(call)
            self._aliases.take_writes()

    def _close_pass(self, call: str) -> None:
        """A checkpoint has what a step has behind a backward pass."""
        if self._delivery.takes_one_pass:
            refuse_within_step(call)
        if self._delivery.awaits_end:
            raise ZeroOptError(
                f"{call}() came before the end of a backward pass; call it behind the "
                "pass, and zero_grad() after an exception in backward()"
            )
        self._sharding.end_all()
        self._sharding.check_ended()
        self._aliases.check_not_replaced()
        self._aliases.move_back(call)
        self._aliases.take_writes()
        check_not_written(self._aliases.trained)
        self._delivery.close()
        self._device.synchronize()

    def _prepare_state(self, call: str) -> None:
        self._check_open()
        if self._delivery.passes:
            refuse_within_step(call)
        self._sharding.end_all()  # an exception has ended a forward pass
        self._wait_for_outcome()
        self._device.synchronize()  # the caller may have written parameters

    def __getstate__(self) -> dict[str, Any]:
        raise ZeroOptError(
            "an optimizer with a compiled step cannot be copied or pickled; save its "
            "state_dict()"
        )

    def close(self) -> None:
        """Gives the parameters memory of their own and removes all hooks. Deleting the
        optimizer does the same. A checkpoint that was begun is lost, with a warning; one
        rank alone ends it."""
        try:
            self._wait_for_outcome()
        finally:
            try:
                self._end_begun_checkpoint()
            finally:
                self._finalizer()
