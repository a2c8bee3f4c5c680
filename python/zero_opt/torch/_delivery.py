# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients go to the step while a backward pass computes them.

A hook does not know when a backward pass begins. The first gradient after the end of a
pass therefore begins the next one, and only then is the pass before it closed: the last
pass of a step is closed by apply. torch tells the end of a pass to callbacks.

Re-entrant checkpointing runs backward passes within a backward pass. The end of an inner
one does not end the pass. A parameter that several checkpointed segments use arrives
several times, and each arrival again begins another pass of the step. Passes are summed,
so the sum is the same.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable

import torch
from torch.autograd import Variable
from torch.autograd.function import BackwardCFunction

from zero_opt import _abi
from zero_opt._step import Step
from zero_opt.errors import ZeroOptError
from zero_opt.torch._aliases import Placed
from zero_opt.torch._device import Device
from zero_opt.torch._receivers import make_receiver

_BACKWARD = (torch.autograd.backward.__code__, torch.autograd.grad.__code__)
# What a backward pass calls of an autograd.Function in Python. The thread in which torch
# works on a GPU has no other frames of the outer pass.
_FUNCTION = BackwardCFunction.apply.__code__


def _is_nested() -> bool:
    """Whether this is called in a backward pass that runs within another one."""
    frame: types.FrameType | None = sys._getframe(1)
    is_within = False
    while frame is not None:
        if is_within and (frame.f_code is _FUNCTION or frame.f_code in _BACKWARD):
            return True
        is_within = is_within or frame.f_code in _BACKWARD
        frame = frame.f_back
    return False


class Delivery:
    """The gradients of one optimizer. It keeps no parameter alive, since the hooks of
    parameters keep it alive."""

    def __init__(
        self,
        step: Step,
        device: Device,
        before_pass: Callable[[bool, int | None], list[Placed]],
    ) -> None:
        """|before_pass| is called before each pass, with whether it begins a step, and with
        the number of the parameter whose gradient begins it, if one does. It returns
        parameters that had no hook until now."""
        self._step = step
        self._before_pass = before_pass
        self._has_ended = True
        # Whether torch will tell the end of the running backward pass.
        self._has_callback = False
        self._delivered: set[int] = set()
        # By number of the parameter.
        self._hooks: dict[int, Callable[[torch.Tensor], None]] = {}
        self._receiver = make_receiver(step, device)
        self.passes = 0
        # Whether the step knows that the last pass has ended.
        self._is_closed = True
        # Whether no pass began since the step was loaded.
        self._is_loaded = False
        # Whether losses have to be scaled, and whether a backward pass went through a
        # scaled one, and none that delivered gradients has ended since.
        self.needs_scale = False
        self.is_scaled = False
        self.takes_one_pass = False
        self.hint = _abi.HINT_UNKNOWN
        # Of stage 3.
        self.on_begin: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None

    def make_hook(
        self, entry: Placed, check: Callable[[], None] | None = None
    ) -> Callable[[torch.Tensor], None]:
        """The hook of a parameter, with all that a call does not have to make anew. |check|
        says whether a gradient may arrive."""
        name, number = entry.name, entry.number
        strided, dtype = torch.strided, entry.view.dtype
        delivered = self._delivered
        take = self._receiver.make_take(entry)

        def deliver(parameter: torch.Tensor) -> None:
            gradient = parameter.grad
            if gradient is None:
                raise ZeroOptError(
                    f"the gradient of parameter '{name}' was taken by another hook; remove "
                    "that hook, or register it on the gradient with register_hook()"
                )
            try:
                is_anew = number in delivered
                if (
                    check is not None
                    or is_anew
                    or self._has_ended
                    or not self._has_callback
                ):
                    if check is not None:
                        check()
                    self.begin(is_anew, number)
                if gradient.layout is not strided:
                    raise ZeroOptError(
                        f"the gradient of parameter '{name}' is sparse; make the module "
                        "with sparse=False"
                    )
                if gradient.dtype is not dtype:
                    raise ZeroOptError(
                        f"the gradient of parameter '{name}' has dtype {gradient.dtype}, "
                        f"and the parameter {dtype}; leave its grad_dtype as it is"
                    )
                if gradient.is_neg():
                    gradient = gradient.resolve_neg()
                if not gradient.is_contiguous():
                    gradient = gradient.contiguous()
                take(gradient)
                delivered.add(number)
            finally:
                # Also after an error: the next backward pass would add to it.
                parameter.grad = None

        self._hooks[number] = deliver
        return deliver

    def note_scaled(self, _: torch.Tensor) -> None:
        """A hook of a scaled loss: a backward pass begins there. Its end is known here also
        where all its gradients are delivered by inner passes."""
        self.is_scaled = True
        passes = self.passes

        def end() -> None:
            if self.passes > passes and not _is_nested():
                self.is_scaled = False

        Variable._execution_engine.queue_callback(end)

    def begin(self, is_anew: bool, arriving: int | None = None) -> None:
        """Begins a pass if none is open, or |is_anew|, with the gradient of a parameter, or
        before one."""
        if self._has_ended or is_anew:
            self._begin(is_backward=True, arriving=arriving)
        elif not self._has_callback:
            self._ask_for_end()

    def begin_empty(self) -> None:
        """A pass in which torch runs no backward pass."""
        self._begin(is_backward=False)

    def give_up(self) -> None:
        """No backward pass runs. If one has not ended, an exception has ended it."""
        self._has_ended = True
        self._has_callback = False

    def deliver_late(self, entry: Placed) -> None:
        """Takes a gradient that no hook has taken into the open pass."""
        if entry.parameter.grad is not None:
            self._has_ended = False
            self._hooks[entry.number](entry.parameter)

    @property
    def awaits_end(self) -> bool:
        """Whether torch will tell the end of a pass. If none runs, an exception has ended
        it."""
        return self._has_callback and not self._has_ended

    def flush(self) -> None:
        """Before apply: the step gets what it did not get yet."""
        self._receiver.flush()

    @property
    def has_gradients(self) -> bool:
        """Whether the last pass has delivered any."""
        return bool(self._delivered)

    def close(self) -> None:
        """Closes the open pass, if there is one. Its gradients are sums from now on."""
        if self._is_closed:
            return
        self._receiver.flush()
        self._step.accumulate()
        self._receiver.settle()
        self._is_closed = True
        self.give_up()

    def resume(self, passes: int) -> None:
        """|passes| passes were made before the step was loaded."""
        self.reset()
        self.passes = passes
        self._is_loaded = True

    def discard(self) -> None:
        """Drops the gradients since the last step."""
        self._step.discard()
        self.reset()

    def reset(self) -> None:
        """No pass is open any more."""
        self._has_ended = True
        self._is_closed = True
        self._is_loaded = False
        self._delivered.clear()
        self._receiver.drop()
        self.passes = 0
        self.is_scaled = False

    def _begin(self, is_backward: bool, arriving: int | None = None) -> None:
        if is_backward and self.needs_scale and not self.is_scaled:
            raise ZeroOptError(
                "backward() of a loss that is not scaled, and the optimizer has a loss "
                "scale; call optimizer.scale(loss).backward(), and no GradScaler; for "
                "gradients that are scaled, optimizer.scale(loss / optimizer.loss_scale)"
            )
        if self.passes and self.takes_one_pass:
            raise ZeroOptError(
                "a second backward pass since the last step(), and the optimizer was "
                "created with one_backward=True; call step() after each, or leave "
                "one_backward out"
            )
        new = self._before_pass(self.passes == 0 or self._is_loaded, arriving)
        self._is_loaded = False
        self.close()
        self._step.begin_backward(self.hint)
        self.passes += 1
        self._is_closed = False
        self._delivered.clear()
        self._has_ended = False
        self.on_begin()
        if is_backward:
            self._ask_for_end()
        else:
            self._has_callback = True
        for entry in new:
            self.deliver_late(entry)

    def _ask_for_end(self) -> None:
        Variable._execution_engine.queue_callback(self._end)
        self._has_callback = True

    def _end(self) -> None:
        self._has_callback = False
        # If the outer pass delivers nothing more, its end stays unknown. The next pass then
        # begins when a parameter arrives again.
        self._has_ended = not _is_nested()
        if self._has_ended:
            self.is_scaled = False
            self._receiver.flush()
            self.on_end()
