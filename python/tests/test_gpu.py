# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers of parameters on a GPU. CI has none, so docs/gpu.md says when these tests ran.

A model on the GPU and a twin of it on the CPU get the same gradients. The bits of all
parameters and of all state are then the same, too.
"""

from __future__ import annotations

import copy
import dataclasses
import gc
import io
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from gpus import (
    DTYPES,
    GPU,
    Listed,
    deliver,
    list_differences,
    make_twins,
    repeatable,
    share_gpu,
)
from models import make_model
from ranks import Workers
from test_reentrant import Segments
from test_stage3 import check_equal, check_equal_alone, check_reduced_once
from torch import nn
from units import Result, Training, train_units

import zero_opt.torch as zo
from zero_opt.errors import ZeroOptError

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="PyTorch finds no GPU on this machine"
)


def compare_steps(
    dtype: torch.dtype, make: Callable[..., Any], passes: int, **options: Any
) -> list[str]:
    ours, optimizer, twin, reference = make_twins(dtype, make, **options)
    for step in range(3):
        for number in range(passes):
            for model in (ours, twin):
                deliver(model, 10 * step + number, leave_out=[step]).backward()
        for each in (optimizer, reference):
            each.step()
            each.param_groups[0]["lr"] *= 0.7
    found = list_differences(ours, optimizer, twin, reference)
    optimizer.close()
    reference.close()
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", [zo.AdamW, zo.Adam, zo.SGD, zo.Lion])
def test_bits_are_those_of_the_cpu(make: Callable[..., Any], dtype: torch.dtype) -> None:
    for passes in (1, 2):
        for zero in (0, 1, 2):
            assert compare_steps(dtype, make, passes, max_norm=0.5, zero=zero) == []
    assert compare_steps(dtype, make, 1, one_backward=True, zero=2) == []
    assert compare_steps(dtype, make, 2, offload=True, zero=1) == []


@pytest.mark.parametrize("name", ["adamw", "torch"])
def test_gradients_that_are_not_finite(name: str) -> None:
    options = {"form": "torch"} if name == "torch" else {}
    ours, optimizer, twin, reference = make_twins(torch.float32, max_norm=1.0, **options)
    for step, scale in enumerate((1.0, float("inf"), 1.0)):
        for model in (ours, twin):
            deliver(model, step, scale).backward()
        for each in (optimizer, reference):
            each.step()
            assert each.step_was_skipped == (step == 1)
    assert list_differences(ours, optimizer, twin, reference) == []


def test_loss_scale() -> None:
    ours, optimizer, twin, reference = make_twins(torch.float16, loss_scale="dynamic")
    for step, scale in enumerate((1e-3, 1.0, 1e4, 1.0)):
        for model, each in ((ours, optimizer), (twin, reference)):
            each.scale(deliver(model, step, scale)).backward()
            each.step()
        assert optimizer.loss_scale == reference.loss_scale
        assert optimizer.step_was_skipped == reference.step_was_skipped
    assert list_differences(ours, optimizer, twin, reference) == []


def test_gradients_come_late_and_their_memory_is_used_again() -> None:
    ours, optimizer, twin, reference = make_twins(torch.float32)
    stream = torch.cuda.Stream()
    for step in range(3):
        deliver(twin, step).backward()
        reference.step()
        with torch.cuda.stream(stream):
            loss = deliver(ours, step)
            torch.cuda._sleep(20_000_000)
            loss.backward()
            # Another tensor may have the memory of a gradient, and not too early.
            rest = [torch.full((64, 1025), float("nan"), device=GPU) for _ in range(8)]
            optimizer.step()
        del rest
    torch.cuda.synchronize()
    assert list_differences(ours, optimizer, twin, reference) == []


def test_step_does_not_wait() -> None:
    ours, optimizer, _, _ = make_twins(torch.float32)
    deliver(ours, 0).backward()
    optimizer.step()
    assert optimizer.grad_norm is not None
    loss = deliver(ours, 1)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    torch.cuda._sleep(2_000_000_000)  # about a second
    loss.backward()
    optimizer.step()
    called = time.perf_counter() - begin
    assert optimizer.grad_norm > 0
    waited = time.perf_counter() - begin
    assert called < 0.5 * waited


@pytest.mark.parametrize("dtype", DTYPES)
def test_parameters_that_others_write(dtype: torch.dtype) -> None:
    ours, optimizer, twin, reference = make_twins(dtype)

    def load(model: nn.Module) -> None:
        model.load_state_dict({k: v * 0.5 for k, v in model.state_dict().items()})

    def fill(model: nn.Module) -> None:
        nn.init.constant_(model.list[0], 0.25)

    def assign(model: nn.Module) -> None:
        model.load_state_dict(
            {k: v.clone() * 2 for k, v in model.state_dict().items()}, assign=True
        )

    def replace_data(model: nn.Module) -> None:
        for parameter in model.parameters():
            parameter.data = parameter.data.clone() + 1

    for step, write in enumerate((load, fill, assign, replace_data)):
        for model, each in ((ours, optimizer), (twin, reference)):
            write(model)
            deliver(model, step).backward()
            each.step()
    ours.list[2].data.mul_(2)
    twin.list[2].data.mul_(2)
    changed = optimizer.parameters_changed()
    assert changed == (twin.list[2].numel() if dtype == torch.bfloat16 else 0)
    for model, each in ((ours, optimizer), (twin, reference)):
        deliver(model, 9).backward()
        each.step()
    assert list_differences(ours, optimizer, twin, reference) == []


def test_state_goes_to_other_devices() -> None:
    ours, optimizer, twin, reference = make_twins(torch.bfloat16)
    deliver(ours, 0).backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save((ours.state_dict(), optimizer.state_dict()), file)
    file.seek(0)
    model_state, state = torch.load(file, weights_only=True)
    twin.load_state_dict(model_state)
    reference.load_state_dict(state)
    again = Listed(torch.bfloat16).to(GPU)
    third = zo.AdamW(again, lr=0.5)
    again.load_state_dict(model_state)
    third.load_state_dict(state)
    for model, each in ((ours, optimizer), (twin, reference), (again, third)):
        deliver(model, 1).backward()
        each.step()
    assert list_differences(ours, optimizer, twin, reference) == []
    assert list_differences(again, third, twin, reference) == []


def test_state_of_torch() -> None:
    """What torch's optimizer has saved on a GPU goes on here."""
    theirs = Listed(torch.float32).to(GPU)
    ours = copy.deepcopy(theirs)
    saved = torch.optim.AdamW(theirs.parameters(), lr=0.01, fused=True)

    def train(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        deliver(model, step).backward()
        optimizer.step()
        optimizer.zero_grad()

    for step in (0, 1):
        train(theirs, saved, step)
    ours.load_state_dict(theirs.state_dict())
    optimizer = zo.AdamW(ours, lr=0.01, form="torch")
    optimizer.load_state_dict(saved.state_dict())
    for step in (2, 3):
        train(theirs, saved, step)
        train(ours, optimizer, step)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


def test_reentrant_checkpointing_is_one_pass() -> None:
    model = Segments().to(GPU)
    optimizer = zo.SGD(model, lr=0.5)
    x = torch.full((4, 6), 0.1, device=GPU)
    model(x).square().mean().backward()
    assert optimizer._delivery.passes == 1
    model(x).square().mean().backward()
    assert optimizer._delivery.passes == 2
    optimizer.step()


def test_compiled_model_and_autocast() -> None:
    model = make_model("gpt").to(GPU)
    optimizer = zo.AdamW(model, lr=0.01, max_norm=1.0)
    compiled = torch.compile(model, backend="aot_eager")
    tokens = torch.randint(29, (3, 9), device=GPU)
    losses = []
    for _ in range(10):
        with torch.autocast("cuda", torch.bfloat16):
            logits = compiled(tokens[:, :-1])
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), tokens[:, 1:].flatten()
        )
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_a_closed_optimizer_leaves_parameters_and_no_memory() -> None:
    twin = Listed(torch.bfloat16, [(1 << 20,), (3, 5)])

    def train_and_close() -> None:
        model = copy.deepcopy(twin).to(GPU)
        optimizer = zo.AdamW(model, lr=0.01)
        deliver(model, 0).backward()
        optimizer.step()
        expected = [p.detach().cpu().clone() for p in model.parameters()]
        optimizer.close()
        for p, q in zip(model.parameters(), expected, strict=True):
            assert torch.equal(p.detach().cpu(), q)

    def measure() -> int:
        gc.collect()
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info()[0])

    for _ in range(3):
        train_and_close()
    free = measure()
    for _ in range(10):
        train_and_close()
    assert free - measure() < 16 << 20


def test_more_elements_than_32_bits_count() -> None:
    if torch.cuda.mem_get_info()[0] < 40 << 30:
        pytest.skip("needs 40 GiB of a GPU")
    elements = (1 << 31) + 4099
    model = nn.ParameterList([torch.ones(elements, device=GPU)])
    optimizer = zo.SGD(model, lr=0.5)
    with torch.no_grad():
        model[0].grad = torch.ones(elements, device=GPU)
        model[0].grad[-1] = 3.0
    optimizer.step()
    assert optimizer.grad_norm == pytest.approx((elements + 8) ** 0.5, rel=1e-9)
    parameter = model[0].detach()
    assert parameter[-1].item() == -0.5
    assert parameter[:-1].min().item() == parameter[:-1].max().item() == 0.5


def test_refused() -> None:
    model = Listed(torch.float32)
    model.list[1] = nn.Parameter(torch.zeros(3, device=GPU))
    with pytest.raises(ZeroOptError, match=r"'list.1' is on cuda:0, and 'list.0' is on"):
        zo.AdamW(model, lr=0.1)
    ours, optimizer, _, _ = make_twins(torch.float32)
    ours.cpu()
    with pytest.raises(ZeroOptError, match="had device cuda:0"):
        deliver(ours, 0).backward()
    optimizer.close()


# ------------------------------------------------------------------------------------------
# Several ranks
# ------------------------------------------------------------------------------------------


def compare_ranks(dtype: torch.dtype, zero: int, passes: int) -> list[str]:
    rank = share_gpu()
    ours, optimizer, twin, reference = make_twins(
        dtype, zo.AdamW, max_norm=0.5, zero=zero, timeout=60.0
    )
    for step in range(3):
        for number in range(passes):
            for model in (ours, twin):
                seed = 100 * step + 10 * number + rank
                deliver(model, seed, leave_out=[step]).backward()
        optimizer.step()
        reference.step()
    found = list_differences(ours, optimizer, twin, reference)
    optimizer.close()
    reference.close()
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_of_two_ranks(workers: Workers, dtype: torch.dtype) -> None:
    for zero in (0, 1, 2):
        for passes in (1, 2):
            assert workers.run(compare_ranks, dtype, zero, passes) == [[], []]


# ------------------------------------------------------------------------------------------
# Stage 3
# ------------------------------------------------------------------------------------------


def train_repeatably(zero: int, training: Training) -> Result:
    if torch.distributed.is_initialized():
        share_gpu()
    with repeatable():
        result = train_units(zero, training)
    return dataclasses.replace(
        result, model={name: value.cpu() for name, value in result.model.items()}
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offload", [False, True, "parameters"])
def test_units_of_two_ranks(
    workers: Workers, dtype: torch.dtype, offload: bool | str
) -> None:
    # Layers so large that gathers take longer than the calls that queue them.
    for width, accumulation in ((16, 2), (768, 1)):
        training = Training(dtype, accumulation, width=width, device="cuda")
        training = dataclasses.replace(training, offload=offload)
        check_equal(workers, training, train_repeatably)


@pytest.mark.parametrize("checkpointing", ["re-entrant", "not re-entrant"])
def test_units_with_checkpointing(workers: Workers, checkpointing: str) -> None:
    training = Training(
        checkpointing=checkpointing, accumulation=2, evaluates=True, device="cuda"
    )
    check_equal(workers, training, train_repeatably)


@pytest.mark.parametrize("keep", ["last", True])
def test_units_that_are_kept(workers: Workers, keep: bool | str) -> None:
    training = Training(accumulation=2, keep=keep, evaluates=True, device="cuda")
    check_equal(workers, training, train_repeatably)


@pytest.mark.parametrize("keep", [False, "last"])
def test_units_in_a_declared_order(workers: Workers, keep: bool | str) -> None:
    for width in (16, 768):
        training = Training(accumulation=2, keep=keep, width=width, device="cuda")
        training = dataclasses.replace(training, unit_order="declared")
        check_equal(workers, training, train_repeatably)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_units(workers: Workers, backend: str) -> None:
    training = Training(accumulation=2, backend=backend, width=64, device="cuda")
    check_equal(workers, training, train_repeatably)


@pytest.mark.parametrize("offload", [False, "parameters"])
def test_a_layer_that_is_frozen(workers: Workers, offload: bool | str) -> None:
    for layer, width in ((0, 16), (2, 768)):
        training = Training(frozen_layer=layer, width=width, device="cuda")
        training = dataclasses.replace(training, offload=offload)
        check_equal(workers, training, train_repeatably)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_that_are_reduced_once_a_step(
    workers: Workers, dtype: torch.dtype
) -> None:
    training = Training(dtype, accumulation=2, keep="last", device="cuda")
    check_reduced_once(workers, training, train_repeatably)


def test_units_of_one_rank() -> None:
    for offload in (False, True, "parameters"):
        check_equal_alone(
            Training(accumulation=2, offload=offload, device="cuda"), train_repeatably
        )
