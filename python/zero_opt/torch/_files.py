# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints as files of the runtime (docs/checkpoints.md), with any torch."""

from __future__ import annotations

import operator
import os
import warnings
from typing import Protocol, TypeAlias

from zero_opt._step import Step
from zero_opt.errors import ZeroOptError
from zero_opt.torch._delivery import Delivery
from zero_opt.torch._ranks import Ranks
from zero_opt.torch._state import State

Folder: TypeAlias = "str | os.PathLike[str]"


class _Optimizer(Protocol):
    _step: Step
    _delivery: Delivery
    _state: State
    _ranks: Ranks
    _begun_folder: Folder | None

    def _prepare_files(self, call: str, *, within_step: bool = False) -> None: ...


def _check_number(number: int) -> int:
    """That of a checkpoint."""
    try:
        found = operator.index(number)
    except TypeError:
        found = -1
    if not 0 <= found < 2**63:
        raise ZeroOptError(
            "number must be a whole number from 0 on, such as that of the step, got "
            f"{number!r}"
        )
    return found


class FileCheckpoints:
    """Saves the trained parameters and all state of all ranks to a folder, and loads them
    on any number of ranks, at any stage. All ranks make each call, between steps or between
    two backward passes of a step. Frozen parameters, buffers and param_groups are not in
    it."""

    _begun_folder: Folder | None = None

    def save_checkpoint(self: _Optimizer, folder: Folder, number: int = 0) -> None:
        """All ranks see |folder|. The checkpoint that is there stays until the new one is
        whole. |number|, such as that of the step, is what load_checkpoint returns.

        Behind a backward pass the gradients since the last step() are in it, too. All ranks
        have made as many."""
        self._prepare_files("save_checkpoint", within_step=True)
        self._step.save(os.fsencode(folder), _check_number(number))

    def begin_checkpoint(self: _Optimizer, folder: Folder, number: int = 0) -> None:
        """As save_checkpoint, and a thread writes while training goes on. The folder has
        the previous checkpoint until end_checkpoint, which comes before close()."""
        self._prepare_files("begin_checkpoint", within_step=True)
        self._step.begin_save(os.fsencode(folder), _check_number(number))
        self._begun_folder = folder

    def end_checkpoint(self: _Optimizer) -> None:
        """Waits until the files are on the disk."""
        self._prepare_files("end_checkpoint", within_step=True)
        self._begun_folder = None
        self._step.end_save()

    def _end_begun_checkpoint(self: _Optimizer) -> None:
        """Before the optimizer is closed. Other ranks may not make this call, so only a
        rank that is alone can end what it began."""
        folder, self._begun_folder = self._begun_folder, None
        if folder is None:
            return
        reason = ""
        if self._ranks.size == 1:
            try:
                if self._delivery.passes:
                    self._delivery.discard()  # no save ends within a backward pass
                self._step.end_save()
                return
            except ZeroOptError as error:
                reason = f" ({error})"
        warnings.warn(
            f"close() came before end_checkpoint(), and the checkpoint that was begun in "
            f"'{os.fsdecode(folder)}' is lost{reason}; call end_checkpoint() on all ranks "
            "before close()",
            stacklevel=3,
        )

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
