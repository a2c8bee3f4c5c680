# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""transformers.Trainer with a compiled step.

from zero_opt.torch.trainer import Trainer

trainer = Trainer(model, args, zero=2, train_dataset=dataset)

A script with a Trainer of its own puts this class before it: `class Mine(Trainer,
OwnTrainer)`.
"""

from __future__ import annotations

import os
from typing import Any

import torch
import transformers
from torch import nn

from zero_opt.errors import ZeroOptError
from zero_opt.torch import optimizers
from zero_opt.torch._optimizer import CompiledOptimizer
from zero_opt.torch._units import Units
from zero_opt.torch.accelerate import (
    PreparedOptimizer,
    check_accelerator,
    prepare_model,
    prepare_optimizer,
)

_OPTIMIZERS: dict[type, type[CompiledOptimizer]] = {
    torch.optim.AdamW: optimizers.AdamW,
    torch.optim.SGD: optimizers.SGD,
}
# These choose an implementation of torch and change no result.
_IGNORED = ("foreach", "fused")


class Trainer(transformers.Trainer):  # type: ignore[misc]
    """zero: the stage of ZeRO; units: of stage 3. See zero_opt.torch.optimizers. The rest
    is as in transformers.Trainer."""

    optimizer: Any

    def __init__(
        self, *args: Any, zero: int = 1, units: Units = None, **kwargs: Any
    ) -> None:
        self.zero = zero
        self.units = units
        super().__init__(*args, **kwargs)
        check_accelerator(self.accelerator)

    @property
    def _max_norm(self) -> float | None:
        return self.args.max_grad_norm if self.args.max_grad_norm > 0 else None

    def create_optimizer(self, model: nn.Module | None = None) -> Any:
        model = self.model if model is None else model
        if self.optimizer is None:
            self.optimizer = self._make_optimizer(model)
        if not isinstance(self.optimizer, PreparedOptimizer):
            self.optimizer = prepare_optimizer(self.accelerator, self.optimizer)
        optimizer = self.optimizer.optimizer
        self._check_best_model(model)
        if optimizer.max_norm != self._max_norm:
            raise ZeroOptError(
                f"the optimizer has max_norm {optimizer.max_norm}, and TrainingArguments "
                f"max_grad_norm {self.args.max_grad_norm}; give both the same value"
            )
        # A training that ended within a step leaves gradients.
        optimizer.zero_grad()
        return self.optimizer

    def _make_optimizer(self, model: nn.Module) -> CompiledOptimizer:
        given = self.optimizer_cls_and_kwargs
        kind, options = given or self.get_optimizer_cls_and_kwargs(self.args, model)
        kind = _OPTIMIZERS.get(kind, kind)
        if not (isinstance(kind, type) and issubclass(kind, CompiledOptimizer)):
            raise ZeroOptError(
                f"Trainer would create {getattr(kind, '__name__', kind)}, which no step "
                "computes; set optim='adamw_torch' or 'sgd', or pass "
                "optimizers=(optimizer, None)"
            )
        decayed = set(self.get_decay_parameter_names(model))
        named = list(model.named_parameters())
        groups = [
            {
                "params": [entry for entry in named if (entry[0] in decayed) is is_decayed],
                "weight_decay": self.args.weight_decay if is_decayed else 0.0,
            }
            for is_decayed in (True, False)
        ]
        return kind(
            groups,
            model=model,
            max_norm=self._max_norm,
            zero=self.zero,
            units=self.units,
            timeout=float(self.args.ddp_timeout),
            **{key: value for key, value in options.items() if key not in _IGNORED},
        )

    def _wrap_model(
        self, model: nn.Module, training: bool = True, dataloader: Any = None
    ) -> nn.Module:
        wrapped: nn.Module = super()._wrap_model(model, training, dataloader)
        return prepare_model(self.accelerator, wrapped) if training else wrapped

    def _clip_grad_norm(self, model: nn.Module) -> None:
        """The step clips."""

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> None:
        """The step knows it when it is applied."""

    def _maybe_log_save_evaluate(self, tr_loss: Any, _: Any, *args: Any, **kw: Any) -> None:
        # The norm is that of a step on which a GPU still works, so it is not always read.
        norm = self.optimizer.grad_norm if self.control.should_log else None
        super()._maybe_log_save_evaluate(tr_loss, norm, *args, **kw)

    def _check_best_model(self, model: nn.Module) -> None:
        is_adapted = not isinstance(
            self.accelerator.unwrap_model(model), transformers.PreTrainedModel
        ) and hasattr(model, "peft_config")
        if self.args.load_best_model_at_end and is_adapted and self._find_sharded():
            raise ZeroOptError(
                "load_best_model_at_end would load adapters into a model of which ranks "
                "have slices; load the best checkpoint in a new process"
            )

    def _find_sharded(self) -> CompiledOptimizer | None:
        """The optimizer, if ranks have slices of the model."""
        prepared = self.optimizer
        is_sharded = isinstance(prepared, PreparedOptimizer) and prepared.is_sharded
        return prepared.optimizer if is_sharded else None

    def save_model(
        self, output_dir: str | None = None, _internal_call: bool = False
    ) -> None:
        if (optimizer := self._find_sharded()) is None:
            super().save_model(output_dir, _internal_call)
            return
        state = optimizer.consolidate_model()  # all ranks
        if self.args.should_save:
            self._save(output_dir, state_dict=state)
        if self.args.push_to_hub and not _internal_call:
            self.push_to_hub(commit_message="Model save", revision=self.args.hub_revision)

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: nn.Module | None = None
    ) -> None:
        if (optimizer := self._find_sharded()) is None:
            super()._load_from_checkpoint(resume_from_checkpoint, model)
        else:
            self._load_sharded(optimizer, resume_from_checkpoint)

    def _load_sharded(self, optimizer: CompiledOptimizer, folder: str) -> None:
        """A model of transformers may have other names in files."""
        model = self.accelerator.unwrap_model(self.model)
        weights: Any = folder
        if isinstance(model, transformers.PreTrainedModel):
            weights = {}
            if self.args.process_index == 0:
                weights = type(model).from_pretrained(folder, dtype="auto").state_dict()
        optimizer.load_model(weights)

    def _load_best_model(self) -> None:
        if (optimizer := self._find_sharded()) is None:
            super()._load_best_model()
        else:
            self._load_sharded(optimizer, self.state.best_model_checkpoint)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        self.optimizer.save_beside(output_dir)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            if not os.path.isfile(os.path.join(checkpoint, "optimizer.pt")):
                raise ZeroOptError(
                    f"'{checkpoint}' has no state of the optimizer; resume from one that "
                    "was saved without save_only_model, or load the model alone"
                )
            self.optimizer.load_from(checkpoint)
        super()._load_optimizer_and_scheduler(checkpoint)
