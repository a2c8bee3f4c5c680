# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that differ, that do not come, or that something else reduces for are refused."""

from __future__ import annotations

import sys

import pytest
import torch
import torch.distributed as dist
import torch.distributed.fsdp
from ranks import Workers
from test_refused import make, refuse, step_once
from torch import nn
from training import get_rank

import zero_opt.torch as zo
from zero_opt import ZeroOptError


def test_ranks_without_a_process_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    refuse(
        "WORLD_SIZE is 2, and torch.distributed is not initialized: each rank would train "
        "alone; call torch.distributed.init_process_group() first",
        make(),
    )


def wrap_first() -> None:
    zo.SGD(nn.parallel.DistributedDataParallel(make()))


def wrap_a_part() -> None:
    zo.SGD(nn.Sequential(nn.Linear(2, 3), nn.parallel.DistributedDataParallel(make())))


def wrap_later() -> None:
    model = make()
    optimizer = zo.SGD(model, timeout=60)
    wrapped = nn.parallel.DistributedDataParallel(model)
    wrapped(torch.ones(1, 3)).sum().backward()
    optimizer.step()


def shard() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = make()
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    zo.SGD(model)


def shard_parameters() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import distribute_tensor

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    zo.SGD([("w", nn.Parameter(distribute_tensor(torch.ones(4), mesh)))])


def test_wrapped_models(workers: Workers) -> None:
    answer = (
        "ZeroOptError: {} is wrapped in {}, and this optimizer already reduces gradients "
        "over the ranks; pass the model without the wrapper"
    )
    ddp = "DistributedDataParallel"
    assert workers.run_failing(wrap_first) == [answer.format("the model", ddp)] * 2
    assert workers.run_failing(wrap_a_part) == [answer.format("module '1'", ddp)] * 2
    if hasattr(torch.distributed.fsdp, "fully_shard"):  # from torch 2.6 on
        assert workers.run_failing(shard) == [answer.format("the model", "FSDPModule")] * 2
    for message in workers.run_failing(shard_parameters):
        assert "parameter 'w' is a DTensor, such as FSDP2 makes; pass the model" in message
    for message in workers.run_failing(wrap_later):
        assert "DistributedDataParallel or the caller" in message


def differ(kind: str) -> None:
    rank = get_rank()
    shape = 3 + (rank if kind == "shape" else 0)
    model = nn.Linear(shape, 2, bias=not (kind == "number" and rank))
    maximum = 1.0 if kind == "recipe" and rank else None
    zo.SGD(model, max_norm=maximum)


def test_ranks_that_differ(workers: Workers) -> None:
    for kind, part in (
        (
            "shape",
            "rank 1: parameter 'weight' of shape (2, 4) in f32, and on rank 0 parameter",
        ),
        ("number", "rank 1 has 1 parameters, and rank 0 has 2"),
        (
            "recipe",
            "rank 1 has the step 'sgd,loss_divided,max_norm' of stage 1, and ",
        ),
    ):
        for message in workers.run_failing(differ, kind):
            assert part in message, message
            assert message.endswith("create the same optimizer on all ranks")


def fail_on_rank_one() -> None:
    model = make()
    optimizer = zo.SGD(model, timeout=60)
    model(torch.ones(1, 3)).sum().backward()
    if get_rank() == 1:
        raise ValueError("on purpose")
    optimizer.step()


def step_with_another_rate(zero: int) -> str:
    """As a scheduler that steps on one rank only."""
    model = nn.Linear(3, 2)
    optimizer = zo.AdamW(model, lr=0.1, zero=zero)
    before = model.weight.detach().clone()
    if get_rank() == 1:
        optimizer.param_groups[0]["lr"] = 0.2
    model(torch.ones(1, 3)).sum().backward()
    try:
        optimizer.step()
    except ZeroOptError as error:
        assert torch.equal(model.weight, before)
        optimizer.param_groups[0]["lr"] = 0.1
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        assert not torch.equal(model.weight, before)
        return str(error)
    return "not refused"


@pytest.mark.parametrize("zero", [0, 1, 2])
def test_hyperparameters_that_differ(workers: Workers, zero: int) -> None:
    message = (
        "step refused: input 0 ('group0.lr') of apply is 0.1 on rank 0 and 0.2 on rank 1; "
        "pass the same on all ranks"
    )
    assert workers.run(step_with_another_rate, zero) == [message] * 2


def get_rank_of_error() -> tuple[int | None, list[str]]:
    try:
        zo.SGD(nn.Linear(3, 2), lr=-1.0)
    except ZeroOptError as error:
        return error.rank, getattr(error, "__notes__", [])
    return None, ["not refused"]


def test_errors_have_the_rank(workers: Workers) -> None:
    has_notes = sys.version_info >= (3, 11)
    assert workers.run(get_rank_of_error) == [
        (rank, [f"on rank {rank}"] if has_notes else []) for rank in (0, 1)
    ]
    assert get_rank_of_error() == (None, [])


def test_a_rank_that_does_not_come(workers: Workers) -> None:
    messages = workers.run_failing(fail_on_rank_one)
    assert messages[1] == "ValueError: on purpose"
    assert "rank 1" in messages[0]


@pytest.mark.parametrize("call", ["consolidate_state_dict", "load_model"])
def test_a_call_of_one_rank_alone(workers: Workers, call: str) -> None:
    """As `if rank == 0: torch.save(optimizer.consolidate_state_dict(), file)`."""
    for message in workers.run(call_alone, call):
        assert f"rank 0 in meet of '{call}'" in message.replace("rank 0 is in", "rank 0 in")
        assert "in reduce_scatter of 'b0.gradient'" in message
        assert message.endswith("backward passes, and the same calls of the optimizer")


def call_alone(call: str) -> str:
    model = make()
    optimizer = zo.AdamW(model, timeout=60)
    step_once(model, optimizer)
    with pytest.raises(ZeroOptError) as raised:
        if get_rank() == 0:
            getattr(optimizer, call)(*[{}] * (call == "load_model"))
        step_once(model, optimizer)
    optimizer.close()
    return str(raised.value)
