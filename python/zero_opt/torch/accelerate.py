# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models and optimizers for Hugging Face Accelerate.

model, optimizer = zero_opt.torch.accelerate.prepare(accelerator, model, optimizer)
loader, scheduler = accelerator.prepare(loader, scheduler)

Accelerate chooses the wrapper of a model from a closed list of kinds of training. It wraps
nothing that is marked as prepared already, and the mark is what `prepare` uses.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from accelerate import Accelerator, DistributedType
from accelerate.optimizer import AcceleratedOptimizer
from torch import nn

from zero_opt.errors import ZeroOptError
from zero_opt.torch import _checkpoint, _ranks
from zero_opt.torch._optimizer import CompiledOptimizer


def check_accelerator(accelerator: Accelerator) -> None:
    """Refuses kinds of training that the step cannot be part of."""
    kind = accelerator.distributed_type
    supported = (
        DistributedType.NO,
        DistributedType.MULTI_CPU,
        DistributedType.MULTI_GPU,
    )
    if kind not in supported:
        raise ZeroOptError(
            f"Accelerate trains with {kind}, and the step replaces DistributedDataParallel "
            "on CPUs and GPUs of CUDA only; create the Accelerator without a plugin"
        )
    # On a GPU Accelerate has a GradScaler for fp16. On the CPU it ignores fp16, and says
    # nothing.
    if accelerator.mixed_precision not in ("no", "bf16"):
        raise ZeroOptError(
            f"mixed precision is {accelerator.mixed_precision}, and Accelerate would scale "
            "gradients that the step has already; choose bf16, or none"
        )


def prepare_model(accelerator: Accelerator, model: nn.Module) -> nn.Module:
    """|model| with mixed precision and torch.compile as |accelerator| says, without
    DistributedDataParallel."""
    check_accelerator(accelerator)
    prepared: nn.Module = accelerator.prepare_model(model, evaluation_mode=True)
    prepared._is_accelerate_prepared = True  # type: ignore[assignment]
    return prepared


class PreparedOptimizer(AcceleratedOptimizer):  # type: ignore[misc]
    """Steps where Accelerate synchronizes gradients. Each rank has a state file of its
    own: rank 0 the file that Accelerate or Trainer writes, the others one beside it."""

    optimizer: CompiledOptimizer

    def __init__(self, optimizer: CompiledOptimizer) -> None:
        super().__init__(optimizer, device_placement=False)
        self._is_accelerate_prepared = True
        self._ranks = _ranks.find_ranks(None)
        self._folder: str | None = None

    @property
    def step_was_skipped(self) -> bool:
        return self.optimizer.step_was_skipped

    @property
    def is_sharded(self) -> bool:
        """Whether ranks have slices of the model."""
        return self.optimizer.is_sharded

    @property
    def grad_norm(self) -> float | None:
        return self.optimizer.grad_norm

    def _get_file(self, folder: str, rank: int, ranks: int) -> str:
        return os.path.join(folder, f"optimizer_rank{rank}_of_{ranks}.pt")

    def state_dict(self) -> dict[str, Any]:
        """With the number of ranks, which says how many files there are."""
        return self.optimizer.state_dict() | {"ranks": self._ranks.size}

    def save_beside(self, folder: str) -> None:
        """Writes the state of this rank, if it is not rank 0."""
        rank, ranks = self._ranks.rank, self._ranks.size
        if rank:
            os.makedirs(folder, exist_ok=True)
            torch.save(self.optimizer.state_dict(), self._get_file(folder, rank, ranks))

    def load_from(self, folder: str) -> None:
        """The next state that is loaded is one that was saved to |folder|."""
        self._folder = folder

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """After load_from, |state_dict| is that of rank 0, and all ranks make this call:
        they read what other ranks have saved, and refuse together."""
        folder, self._folder = self._folder, None
        ranks = state_dict.get("ranks")
        if folder is None or not isinstance(ranks, int):
            self.optimizer.load_state_dict(state_dict)
            return
        if ranks == self._ranks.size and self._load_own(folder, state_dict):
            return
        states = [state_dict, *self._read(folder, range(1, ranks), ranks)]
        self.optimizer.load_state_dict(_checkpoint.merge(states))

    def _load_own(self, folder: str, first: dict[str, Any]) -> bool:
        """Whether each rank found its own state in the file of this rank. Another stage
        divides it in another way."""
        rank = self._ranks.rank
        own = self._read(folder, [rank] if rank else [], self._ranks.size)
        try:
            self.optimizer.load_state_dict(own[0] if own else first)
            is_loaded = True
        except ZeroOptError:
            is_loaded = False
        return all(self._ranks.gather(is_loaded))

    def _read(self, folder: str, wanted: Iterable[int], ranks: int) -> list[Any]:
        files = {rank: self._get_file(folder, rank, ranks) for rank in wanted}
        missing = [rank for rank, file in files.items() if not os.path.isfile(file)]
        for lacking in self._ranks.gather(missing):
            for rank in lacking:
                raise ZeroOptError(
                    f"'{folder}' has no state of the optimizer on rank {rank} of {ranks}; "
                    f"copy {os.path.basename(self._get_file(folder, rank, ranks))} to it, "
                    "or resume from another checkpoint"
                )
        return [
            torch.load(file, map_location="cpu", weights_only=True)
            for file in files.values()
        ]


def prepare_optimizer(accelerator: Accelerator, optimizer: Any) -> PreparedOptimizer:
    if not isinstance(optimizer, CompiledOptimizer):
        raise ZeroOptError(
            f"the optimizer {type(optimizer).__name__} reduces no gradients over the "
            "ranks; create one of zero_opt.torch"
        )
    prepared = PreparedOptimizer(optimizer)
    accelerator.prepare_optimizer(prepared)  # knows it by its mark
    return prepared


def _refuse_clipping(*_: Any, **__: Any) -> None:
    raise ZeroOptError(
        "there are no gradients in .grad to clip; give the optimizer max_norm, and read "
        "optimizer.grad_norm after step()"
    )


def prepare(
    accelerator: Accelerator, model: nn.Module, optimizer: CompiledOptimizer
) -> tuple[nn.Module, PreparedOptimizer]:
    """In place of accelerator.prepare(model, optimizer), which prepares all the rest."""
    device = next(model.parameters()).device
    if device.type != accelerator.device.type:
        raise ZeroOptError(
            f"the model is on {device}, and Accelerate trains on {accelerator.device}; "
            "call model.to(accelerator.device) before the optimizer is created"
        )
    model = prepare_model(accelerator, model)
    prepared = prepare_optimizer(accelerator, optimizer)
    # They would find no gradient, clip nothing and say that the norm is 0.
    accelerator.clip_grad_norm_ = _refuse_clipping
    accelerator.clip_grad_value_ = _refuse_clipping
    own = weakref.ref(prepared)
    sharded = accelerator.unwrap_model(model)
    if prepared.is_sharded:
        get_other = accelerator.get_state_dict

        def get_state_dict(asked: nn.Module, unwrap: bool = True) -> Any:
            """On rank 0. All ranks make this call."""
            if accelerator.unwrap_model(asked) is sharded:
                return optimizer.consolidate_model()
            return get_other(asked, unwrap)

        accelerator.get_state_dict = get_state_dict

    def save(_models: Any, _weights: Any, folder: str) -> None:
        if (optimizer := own()) is not None:
            optimizer.save_beside(folder)

    def load(models: list[nn.Module], folder: str) -> None:
        if (optimizer := own()) is None:
            return
        optimizer.load_from(folder)
        if not optimizer.is_sharded:
            return
        if len(models) != 1:
            raise ZeroOptError(
                f"Accelerate would load {len(models)} models, of which ranks have slices "
                "of one, and their files have numbers; prepare the others by another "
                "Accelerator"
            )
        models.clear()  # Accelerate loads those that are left
        optimizer.optimizer.load_model(folder)

    accelerator.register_save_state_pre_hook(save)
    accelerator.register_load_state_pre_hook(load)
    return model, prepared
