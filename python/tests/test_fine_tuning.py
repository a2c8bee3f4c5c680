# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What fine-tuning adds: LoRA, gradient checkpointing and torch.compile."""

from __future__ import annotations

import copy
import math
import pathlib
from typing import Any

import pytest
import torch
from models import Gpt
from ranks import Workers
from torch import nn
from training import get_rank

import zero_opt.errors as zo_errors
import zero_opt.torch as zo

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from hugging_face import launched, make_gpt, make_rows  # noqa: E402
from test_trainer import (  # noqa: E402
    BOUND,
    STEPS,
    Run,
    check_resumed,
    choose,
    finish,
    make_arguments,
    measure_difference,
)

from zero_opt.torch.trainer import Trainer  # noqa: E402


class Lora(nn.Module):
    """A frozen layer in bfloat16, and an update of low rank."""

    def __init__(self, layer: nn.Linear, rank: int = 2) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False).to(torch.bfloat16)
        self.a = nn.Parameter(torch.randn(rank, layer.in_features) / math.sqrt(rank))
        self.b = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.to(torch.bfloat16)).to(x.dtype) + x @ self.a.T @ self.b.T


def make_adapted(seed: int) -> Gpt:
    torch.manual_seed(seed)
    model = Gpt().requires_grad_(False)
    for block in model.blocks:
        block.qkv, block.down = Lora(block.qkv), Lora(block.down)
    return model


def train_adapters(zero: int, is_compiled: bool) -> float:
    """The largest difference from torch's AdamW on the batches of all ranks."""
    ranks = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    model, other = make_adapted(get_rank()), make_adapted(0)
    frozen = copy.deepcopy(other.state_dict())
    units = [type(model.blocks[0])] if zero == 3 else None
    # A list need not have the frozen parameters, and all ranks get those of rank 0.
    listed = [named for named in model.named_parameters() if named[1].requires_grad]
    params = model if zero == 1 else listed
    optimizer = zo.AdamW(params, model=model, lr=1e-2, zero=zero, units=units)
    if zero == 3 and ranks > 1:
        # A rank has slices of the frozen layers, too.
        sharded = model.blocks[0].qkv.layer.weight
        assert sharded.stride() == (0, 0) and bool(sharded.isnan().all())
    trained = [p for p in other.parameters() if p.requires_grad]
    reference = torch.optim.AdamW(trained, lr=1e-2)
    if is_compiled:
        model.forward = torch.compile(model.forward, backend="aot_eager")
    for step in range(3):
        for rank in range(ranks):
            seeds = [torch.Generator().manual_seed(9 * step + rank) for _ in range(2)]
            (other.compute_loss(seeds[0]) / ranks).backward()
            if rank == get_rank():
                model.compute_loss(seeds[1]).backward()
        optimizer.step()
        reference.step()
        reference.zero_grad()
    assert len(optimizer.state) == 8
    largest = 0.0
    whole = optimizer.consolidate_model() if zero == 3 else model.state_dict()
    for name, q in other.named_parameters() if whole else ():
        if not q.requires_grad:
            assert torch.equal(whole[name], frozen[name])
        largest = max(largest, (whole[name] - q).abs().max().item())
    optimizer.close()
    torch.compiler.reset()
    return largest


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
def test_adapters(workers: Workers, is_compiled: bool) -> None:
    found = [train_adapters(1, is_compiled)]
    for zero in () if is_compiled else (0, 2, 3):
        found += workers.run(train_adapters, zero, is_compiled)
    # The frozen layers compute in bfloat16.
    assert max(found) < 1e-5


def freeze_differently() -> str:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[0].requires_grad_(False)
    if get_rank():
        model[0].extra = nn.Parameter(torch.ones(2), requires_grad=False)
    try:
        zo.SGD(model[1].named_parameters(), model=model, lr=0.1)
    except zo_errors.ZeroOptError as error:
        return str(error)
    return "nothing was raised"


def test_other_frozen_parameters_on_a_rank(workers: Workers) -> None:
    for found in workers.run(freeze_differently):
        assert found.startswith("frozen parameter '0.extra' is not the same on rank ")


def train_biases(zero: int) -> float:
    """The largest difference from torch's AdamW. The first trained parameter in the order
    of units is of the second group, since the matrix before it is frozen."""

    def make() -> tuple[nn.Module, list[dict[str, Any]]]:
        torch.manual_seed(7)
        model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8))
        model[0].weight.requires_grad_(False)
        listed = [named for named in model.named_parameters() if named[1].requires_grad]
        matrices = [named for named in listed if named[1].ndim > 1]
        others = [named for named in listed if named[1].ndim <= 1]
        return model, [{"params": matrices, "lr": 0.01}, {"params": others, "lr": 0.1}]

    (model, groups), (other, _) = make(), make()
    units = [nn.Linear] if zero == 3 else None
    optimizer = zo.AdamW(groups, model=model, zero=zero, units=units)
    reference = torch.optim.AdamW(
        [
            {"params": [other[2].weight], "lr": 0.01},
            {"params": [p for p in other.parameters() if p.ndim <= 1], "lr": 0.1},
        ]
    )
    for step in range(3):
        batch = torch.randn(4, 8, generator=torch.Generator().manual_seed(step))
        for made, trained in ((optimizer, model), (reference, other)):
            made.param_groups[1]["lr"] = 0.1 / (step + 1)
            trained(batch).square().sum().backward()
            made.step()
            made.zero_grad()
    whole = optimizer.consolidate_model() if zero == 3 else model.state_dict()
    differences = [
        (whole[name] - q).abs().max().item()
        for name, q in other.named_parameters()
        if whole
    ]
    optimizer.close()
    return max(differences, default=0.0)


def test_biases_of_a_frozen_matrix(workers: Workers) -> None:
    for zero in (1, 3):
        assert max(workers.run(train_biases, zero)) < 1e-5


def make_peft(seed: int) -> Any:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True)
    return get_peft_model(make_gpt(seed), config)


MAKE = {"gpt": make_gpt, "peft": make_peft}


def run(kind: Any, which: str, folder: str, options: dict[str, Any]) -> Run:
    with launched() as rank:
        # Rank 0's parameters count.
        model = MAKE[which](rank)
        return finish(
            kind(model, make_arguments(folder, **options), train_dataset=make_rows(96))
        )


def run_ours(which: str, folder: str, options: dict[str, Any]) -> Run:
    return run(Trainer, which, folder, options)


REENTRANT, NOT_REENTRANT = (
    {
        "activation_checkpointing": True,
        "activation_checkpointing_kwargs": {"use_reentrant": is_reentrant},
    }
    for is_reentrant in (True, False)
)
COMPILED = {"torch_compile": True, "torch_compile_backend": "aot_eager"}


@pytest.mark.parametrize(
    "which, options",
    [
        ("gpt", REENTRANT),
        ("gpt", NOT_REENTRANT),
        ("gpt", COMPILED),
        ("peft", {}),
        ("peft", NOT_REENTRANT),
    ],
    ids=["reentrant", "checkpointing", "compiled", "peft", "peft and checkpointing"],
)
def test_trainer(
    workers: Workers, tmp_path: pathlib.Path, which: str, options: dict[str, Any]
) -> None:
    if which == "peft":
        pytest.importorskip("peft")
    folder = str(tmp_path)
    whole = {"gradient_accumulation_steps": 4}
    expected = run(transformers.Trainer, which, folder, whole)
    found = [run_ours(which, folder, whole | options)]
    if options is not COMPILED:  # it takes long
        found += workers.run(run_ours, which, folder, options)
    for each in found:
        assert measure_difference(each, expected) < BOUND
        assert each.rates == expected.rates
    torch.compiler.reset()


def resume_adapters(folder: str, zero: int) -> list[Run]:
    runs = []
    with launched() as rank:
        for checkpoint in (None, f"{folder}/checkpoint-{STEPS // 2}"):
            # The layers that are frozen are not in the checkpoint.
            model = make_peft(0)
            if checkpoint is not None or rank:
                for name, parameter in model.named_parameters():
                    if "lora" in name:
                        nn.init.normal_(parameter)
            arguments = make_arguments(folder, save_strategy="steps", save_steps=STEPS // 2)
            trainer = Trainer(
                model,
                arguments,
                **choose(zero),
                train_dataset=make_rows(96),
            )
            runs.append(finish(trainer, checkpoint))
    return runs


@pytest.mark.parametrize("zero", [2, 3])
def test_adapters_resume(workers: Workers, tmp_path: pathlib.Path, zero: int) -> None:
    pytest.importorskip("peft")
    alone = resume_adapters(str(tmp_path / "one"), zero)
    check_resumed(*alone)
    for runs in workers.run(resume_adapters, str(tmp_path), zero):
        check_resumed(*runs)
