# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints as files of the runtime (docs/checkpoints.md), with any torch."""

from __future__ import annotations

import os
from typing import Protocol, TypeAlias

from zero_opt._step import Step
from zero_opt.errors import ZeroOptError
from zero_opt.torch._delivery import Delivery
from zero_opt.torch._state import State

Folder: TypeAlias = "str | os.PathLike[str]"


class _Optimizer(Protocol):
    _step: Step
    _delivery: Delivery
    _state: State

    def _prepare_files(self, call: str, *, within_step: bool = False) -> None: ...


class FileCheckpoints:
    """Saves the trained parameters and all state of all ranks to a folder, and loads them
    on any number of ranks, at any stage. All ranks make each call, between steps or between
    two backward passes of a step. Frozen parameters, buffers and param_groups are not in
    it."""

    def save_checkpoint(self: _Optimizer, folder: Folder, number: int = 0) -> None:
        """All ranks see |folder|. The checkpoint that is there stays until the new one is
        whole. |number|, such as that of the step, is what load_checkpoint returns.

        Behind a backward pass the gradients since the last step() are in it, too. All ranks
        have made as many."""
        self._prepare_files("save_checkpoint", within_step=True)
        self._step.save(os.fsencode(folder), number)

    def begin_checkpoint(self: _Optimizer, folder: Folder, number: int = 0) -> None:
        """As save_checkpoint, and a thread writes while training goes on. The folder has
        the previous checkpoint until end_checkpoint."""
        self._prepare_files("begin_checkpoint", within_step=True)
        self._step.begin_save(os.fsencode(folder), number)

    def end_checkpoint(self: _Optimizer) -> None:
        """Waits until the files are on the disk."""
        self._prepare_files("end_checkpoint", within_step=True)
        self._step.end_save()

    def load_checkpoint(self: _Optimizer, folder: Folder, *, gradients: bool = True) -> int:
        """Returns the number of the checkpoint. Parameters of the model change in place.

        A checkpoint that was saved between two backward passes has gradients: the script
        goes on with the next one, `backward_passes`. On another number of ranks that is
        another one, so that all ranks together have as many batches, and losses are taken
        to be divided by the number of backward passes. Without |gradients| the step is at
        its begin, and the script makes its backward passes again. A script finds its place
        by the number that it saved."""
        self._prepare_files("load_checkpoint")
        number = self._step.load(os.fsencode(folder), within_step=gradients)
        self._state.copies.forget()
        self._delivery.resume(self._step.count_passes())
        return number

    @property
    def backward_passes(self: _Optimizer) -> int:
        """The number of backward passes since the last step(), also of those that a
        checkpoint has. A parameter in several segments of re-entrant checkpointing makes
        several passes of one call of backward()."""
        return self._delivery.passes


def refuse_within_step(call: str) -> None:
    raise ZeroOptError(
        f"{call}() came between a backward pass and step(); call it after step(), or "
        "zero_grad() first"
    )
