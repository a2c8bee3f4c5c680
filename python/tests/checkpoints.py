# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a rank does in tests of checkpoints, and the whole state that all ranks have."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
import torch.distributed.checkpoint as dcp
from models import make_model
from torch import nn
from torch.distributed.checkpoint import state_dict as dsd
from torch.distributed.checkpoint.stateful import Stateful
from training import get_rank, list_groups, list_pieces

import zero_opt.torch as zo
from zero_opt import compiler


@contextlib.contextmanager
def use_buckets(size: str) -> Iterator[None]:
    whole = compiler.StepDescription.get_options
    with mock.patch.object(
        compiler.StepDescription,
        "get_options",
        lambda step: {**whole(step), "bucket-bytes": size},
    ):
        yield


@dataclasses.dataclass(frozen=True)
class Layout:
    """How state is divided over the ranks."""

    ranks: int
    zero: int
    buckets: str = "1048576"
    dtype: torch.dtype = torch.float32

    def __str__(self) -> str:
        return (
            f"{self.ranks} ranks, stage {self.zero}, buckets {self.buckets}, {self.dtype}"
        )


def make(layout: Layout, seed: int = 0, **options: Any) -> tuple[nn.Module, zo.AdamW]:
    model = make_model("mlp", layout.dtype, seed)
    with use_buckets(layout.buckets):
        groups = list_groups(model)
        return model, zo.AdamW(groups, zero=layout.zero, max_norm=0.5, **options)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        generator = torch.Generator().manual_seed(10 * step + get_rank())
        # Counts of steps differ between parameters.
        model.uses_adapter = step % 2 == 1
        model.compute_loss(generator).backward()
        optimizer.step()
        optimizer.zero_grad()


class App(Stateful):
    """As the tutorial of torch.distributed.checkpoint has it."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model = model
        self.optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = dsd.get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optimizer}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        dsd.set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state_dict["model"],
            optim_state_dict=state_dict["optim"],
        )


def name_all(way: str, model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
    """What is given to torch.distributed.checkpoint."""
    if way == "app":
        return {"app": App(model, optimizer)}
    return {"model": model, "optim": optimizer}


def read(model: nn.Module, optimizer: zo.AdamW) -> Any:
    """The state of this rank. Pieces are a list, because attributes of tensors do not go
    from process to process."""
    saved = optimizer.state_dict()
    for entry in saved["state"].values():
        for name, tensor in entry.items():
            if hasattr(tensor, "global_shape"):
                entry[name] = (tensor.global_shape, list_pieces(tensor))
    return dict(model.state_dict()), saved


def train_and_save(layout: Layout, way: str, folder: str) -> Any:
    model, optimizer = make(layout)
    train(model, optimizer, range(3))
    dcp.save(name_all(way, model, optimizer), checkpoint_id=folder)
    result = read(model, optimizer)
    optimizer.close()
    return result


def load_and_save(layout: Layout, way: str, folder: str, target: str | None) -> Any:
    model, optimizer = make(layout, seed=5, lr=1)
    train(model, optimizer, range(1))  # there is other state to be replaced
    state = name_all(way, model, optimizer)
    dcp.load(state, checkpoint_id=folder)
    result = read(model, optimizer)
    if target is not None:
        dcp.save(state, checkpoint_id=target)
    optimizer.close()
    return result


def load_and_train(layout: Layout, way: str, folder: str | None) -> Any:
    """Three steps after the checkpoint, or after three steps without one."""
    model, optimizer = make(layout, seed=0 if folder is None else 5)
    if folder is None:
        train(model, optimizer, range(3))
    else:
        dcp.load(name_all(way, model, optimizer), checkpoint_id=folder)
    train(model, optimizer, range(3, 6))
    result = read(model, optimizer)
    optimizer.close()
    return result


def join(ranks: list[Any]) -> dict[str, Any]:
    """The whole state, from what `read` returned on each rank."""
    model, first = ranks[0]
    whole: dict[str, Any] = {f"model.{name}": value for name, value in model.items()}
    whole["groups"] = first["param_groups"]
    for key, entry in first["state"].items():
        for name, found in entry.items():
            parts = [state["state"][key][name] for _, state in ranks]
            if isinstance(found, torch.Tensor):
                assert all(torch.equal(part, found) for part in parts)
                whole[f"{key}.{name}"] = found
                continue
            values = torch.full(found[0], torch.nan)
            for _, pieces in parts:
                for begin, piece in pieces:
                    values[begin : begin + piece.numel()] = piece
            assert not values.isnan().any()
            whole[f"{key}.{name}"] = values
    return whole
