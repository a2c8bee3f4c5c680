# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dicts of torch that an optimizer saves and loads."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import torch
from torch import nn

from zero_opt._step import Step
from zero_opt.errors import ZeroOptError
from zero_opt.torch import _checkpoint, _universal
from zero_opt.torch._aliases import Aliases, Placed
from zero_opt.torch._delivery import Delivery
from zero_opt.torch._description import Recipe
from zero_opt.torch._ranks import Ranks
from zero_opt.torch._sharding import Sharding
from zero_opt.torch._source import Source, Wanted, Weights
from zero_opt.torch._state import State


class StateDicts(torch.optim.Optimizer):
    recipe: Recipe
    _aliases: Aliases
    _delivery: Delivery
    _gather_dtype: torch.dtype | None
    _last_inputs: list[float]
    _model: weakref.ref[nn.Module] | None
    _ranks: Ranks
    _sharding: Sharding
    _state: State
    _step: Step

    def _check_open(self) -> None:
        raise NotImplementedError

    def _wait_for_outcome(self) -> None:
        raise NotImplementedError

    def _prepare_state(self, call: str) -> None:
        raise NotImplementedError

    def _prepare_files(self, call: str) -> None:
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The state of this rank. The other ranks need not make this call."""
        self._check_open()
        self._warn_of_gradients("state_dict")
        self._wait_for_outcome()
        numbers = _checkpoint.number_parameters(self.param_groups)
        return {
            "state": {
                numbers[id(trained.parameter)]: self._state.read(trained)
                for trained in self._aliases.trained
            },
            "param_groups": _checkpoint.pack_groups(self.param_groups),
        }

    def consolidate_state_dict(self) -> dict[str, Any]:
        """The state of all ranks as torch's optimizer of this name has it, on rank 0; an
        empty dict on the others. All ranks make this call. Master weights of bfloat16
        parameters are not in it."""
        self._check_open()
        self._warn_of_gradients("consolidate_state_dict")
        self._wait_for_outcome()
        self._step.meet("consolidate_state_dict")
        return _checkpoint.consolidate(
            self._state, self._aliases.trained, self.param_groups, self.recipe, self._ranks
        )

    def _warn_of_gradients(self, call: str) -> None:
        if self._delivery.passes:
            warnings.warn(
                f"{call}() came between a backward pass and step(), and does not have the "
                "gradients so far; call it after step(), or save_checkpoint(), which has "
                "them",
                stacklevel=3,
            )

    @property
    def is_sharded(self) -> bool:
        """Whether this rank has a slice of some parameters, and not the whole."""
        return any(entry.unit is not None for entry in self._aliases.placed)

    def consolidate_model(self) -> dict[str, torch.Tensor]:
        """The state_dict() of the model with the parameters of units whole, in the memory
        of the CPU, on rank 0; an empty dict on the others. All ranks make this call. The
        units are gathered one after the other."""
        model = self._find_model("consolidate_model", "state_dict")
        return self._sharding.collect(model, self._ranks.rank == 0, self._read_exact)

    def _read_exact(self, entry: Placed) -> torch.Tensor | None:
        """On rank 0, the values of a parameter of a unit that travels rounded."""
        dtype = self._gather_dtype
        if entry.is_frozen or dtype is None or dtype.itemsize >= entry.view.dtype.itemsize:
            return None
        return _checkpoint.consolidate_parameter(self._state, entry, self._ranks)

    def _find_model(self, call: str, otherwise: str) -> nn.Module:
        self._prepare_state(call)
        model = None if self._model is None else self._model()
        if model is None:
            raise ZeroOptError(
                f"{call}() is for the model that the optimizer got, and it got none, or "
                f"that is gone; call {otherwise}() of the model"
            )
        return model

    def load_model(self, weights: Weights) -> None:
        """Gives the parameters and the buffers of the model other values: those of a file
        or folder of safetensors, or of a dict such as consolidate_model() returned; only
        rank 0 needs it. All ranks make this call. State stays. Master weights are the
        parameters, where they are not so already."""
        model = self._find_model("load_model", "load_state_dict")
        self._step.meet("load_model")
        wanted: dict[int, Wanted] = {}
        for name, tensor in self._sharding.list_state(model).items():
            if isinstance(tensor, torch.Tensor):
                wanted.setdefault(id(tensor), (tensor, []))[1].append(name)
        source = Source(weights, self._ranks)
        source.find(wanted.values())
        entries = {id(entry.parameter): entry for entry in self._aliases.placed}
        for key, (tensor, names) in wanted.items():
            values = source.read((tensor, names), tensor.device)
            entry = entries.get(key)
            if entry is None or entry.unit is None or entry.is_frozen:
                self._aliases.write(tensor, entry, values)
                continue
            # Master weights stay if they are the new parameter, rounded.
            saved = self._state.read(entry)
            self._aliases.write(tensor, entry, values)
            self._state.restore_master(entry, saved)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads what state_dict() returned on the same rank of as many ranks, what
        torch.distributed.checkpoint has made of it, or the whole state of torch's
        optimizer of this name."""
        self._prepare_state("load_state_dict")
        states, groups = _checkpoint.match(
            state_dict, self.param_groups, self._aliases.trained, self.recipe
        )
        self._state.load(states)
        # The model says what its parameters are, whichever of the two is loaded first.
        self._aliases.expect_writes()
        self._last_inputs = []
        super().load_state_dict({"state": {}, "param_groups": groups})

    def load_universal_checkpoint(self, folder: _universal.Folder) -> int:
        """Loads a universal checkpoint of DeepSpeed into AdamW or Adam: the trained
        parameters, master weights, state and counts of steps. Hyperparameters, the loss
        scale, frozen parameters and buffers stay. All ranks make this call and see
        |folder|, on any number of ranks and at any stage. Returns the number of steps that
        the checkpoint is from; -1 if it does not say so."""
        self._prepare_files("load_universal_checkpoint")
        self._step.meet("load_universal_checkpoint")
        steps = _universal.load(
            folder,
            self._state,
            self._aliases.trained,
            self.param_groups,
            self.recipe,
            self._ranks,
            self._model() if self._model is not None else None,
        )
        self._aliases.note_step()
        return steps

    def save_universal_checkpoint(self, folder: _universal.Folder, number: int) -> None:
        """Writes a universal checkpoint of DeepSpeed to |folder|, from AdamW or Adam. All
        ranks make this call; rank 0 writes. |number| is that of steps. A job of DeepSpeed
        loads it with "load_universal": true in "checkpoint", on any number of ranks."""
        _universal.check_recipe(self.recipe)
        self._prepare_files("save_universal_checkpoint")
        self._step.meet("save_universal_checkpoint")
        values = self.consolidate_model()
        _universal.save(
            folder,
            number,
            self._find_model("save_universal_checkpoint", "state_dict"),
            values,
            self._state,
            self._aliases.trained,
            self.param_groups,
            self.recipe,
            self._ranks,
        )
