# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints, written optimizers, and what units of stage 3 save on a GPU. CI has none, so
docs/gpu.md says when these tests ran."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import pytest
import test_empty_model as empty
import test_stage3_saved as hooked
import test_stage3_travel as narrow
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
from ranks import Workers
from test_gpu import compare_steps, train_repeatably
from test_stage3 import check_equal
from test_written import ADAMAX
from training import get_rank
from units import Training

import zero_opt.torch as zo

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="PyTorch finds no GPU on this machine"
)


def make_pass(model: Any, number: int) -> None:
    deliver(model, 10 * number + get_rank(), leave_out=[number % 4]).backward()


def finish(model: Any, optimizer: Any) -> None:
    while optimizer.backward_passes < 3:
        make_pass(model, 5 + optimizer.backward_passes)
    optimizer.step()


def travel(folder: str, dtype: torch.dtype, zero: int, within: bool, way: str) -> list[str]:
    """Steps are saved on the GPU and on the CPU; what the one has saved goes on on the
    other, and ends with the same bits."""
    if torch.distributed.is_initialized():
        share_gpu()
    options = {"max_norm": 0.5, "zero": zero, "timeout": 60.0}
    ours, optimizer, twin, reference = make_twins(dtype, **options)
    for model, each, place in ((ours, optimizer, "gpu"), (twin, reference, "cpu")):
        make_pass(model, 0)
        each.step()
        for number in range(2 if within else 0):
            make_pass(model, 5 + number)
        if way == "universal":
            each.save_universal_checkpoint(f"{folder}-{place}", 1)
        elif way == "begins":
            each.begin_checkpoint(f"{folder}-{place}", 1)
            finish(model, each)
            each.end_checkpoint()
        else:
            each.save_checkpoint(f"{folder}-{place}", 1)
        if way != "begins":
            finish(model, each)
    found = list_differences(ours, optimizer, twin, reference)
    loaded, third, copied, fourth = make_twins(dtype, **options)
    for model, each, place in ((loaded, third, "cpu"), (copied, fourth, "gpu")):
        if way == "universal":
            assert each.load_universal_checkpoint(f"{folder}-{place}") == 1
        else:
            assert each.load_checkpoint(f"{folder}-{place}") == 1
            assert each.backward_passes == 2 * within
        finish(model, each)
    found += list_differences(loaded, third, twin, reference)
    found += list_differences(ours, optimizer, copied, fourth)
    for each in (optimizer, reference, third, fourth):
        each.close()
    return found


WAYS = [("saves", False), ("saves", True), ("begins", True), ("universal", False)]


@pytest.mark.parametrize("way, within", WAYS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_checkpoints_go_to_other_devices(
    workers: Workers, tmp_path: pathlib.Path, dtype: torch.dtype, way: str, within: bool
) -> None:
    assert travel(f"{tmp_path}/alone", dtype, 0, within, way) == []
    for zero in (1, 2):
        folder = f"{tmp_path}/{zero}"
        assert workers.run(travel, folder, dtype, zero, within, way) == [[], []]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_written_optimizer(dtype: torch.dtype) -> None:
    def make(model: Any, lr: float, **options: Any) -> zo.Optimizer:
        return zo.Optimizer(model, ADAMAX, {"lr": lr, "wd": 0.1}, **options)

    for passes in (1, 2):
        assert compare_steps(dtype, make, passes, max_norm=0.5, zero=passes) == []


@pytest.mark.parametrize("prefetch", [0, 3])
def test_units_that_are_gathered_ahead(workers: Workers, prefetch: int) -> None:
    for width in (16, 768):
        training = Training(accumulation=2, width=width, device="cuda")
        training = dataclasses.replace(training, prefetch=prefetch, unit_order="declared")
        check_equal(workers, training, train_repeatably)


def on_the_gpu(function: Any, *arguments: Any) -> Any:
    """What it makes without a device is on the GPU, as in many scripts."""
    share_gpu()
    with torch.device("cuda"), repeatable():
        return function(*arguments)


@pytest.mark.parametrize("keep", [False, "last"])
@pytest.mark.parametrize("kind, loss", hooked.CASES)
def test_what_units_save(workers: Workers, kind: Any, loss: Any, keep: bool | str) -> None:
    compared = workers.run(on_the_gpu, hooked.compare, kind, loss, keep)
    assert compared == [True, True]


def train_narrow(offload: bool | str) -> tuple[Any, Any]:
    (losses, whole, are_rounded), (expected, model) = (
        narrow.train(offload),
        narrow.train_plainly(),
    )
    assert are_rounded
    for name, value in whole.items():
        plain = model.state_dict()[name]
        torch.testing.assert_close(value, plain, rtol=1e-5, atol=1e-6)
    return losses, expected


@pytest.mark.parametrize("offload", [False, "parameters"])
def test_units_that_travel_in_bf16(workers: Workers, offload: bool | str) -> None:
    for rank, (losses, plain) in enumerate(workers.run(on_the_gpu, train_narrow, offload)):
        assert losses == pytest.approx(plain[rank], rel=1e-5)


@pytest.mark.parametrize("zero", [1, 3])
def test_a_model_whose_values_come_with_the_optimizer(workers: Workers, zero: int) -> None:
    assert workers.run(on_the_gpu, empty.compare, zero, None) == [True, True]


def test_trace(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZERO_OPT_TRACE", str(tmp_path))
    monkeypatch.setenv("ZERO_OPT_NVTX", "1")
    model = Listed(torch.bfloat16).to(GPU)
    optimizer = zo.AdamW(model, lr=0.01)
    deliver(model, 0).backward()
    optimizer.step()
    optimizer.close()
    events = json.loads((tmp_path / "rank-0.json").read_text())
    assert {"gradient", "apply"} <= {event["name"] for event in events}
