# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trainer and Accelerate on a GPU, on one rank."""

from __future__ import annotations

import pathlib

import pytest
import torch

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import test_accelerate as accelerated  # noqa: E402
import test_trainer as trained  # noqa: E402
from gpus import repeatable  # noqa: E402
from hugging_face import launched, make_gpt, make_rows  # noqa: E402

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="PyTorch finds no GPU on this machine"
)
# torch sums squares in f32 in another order than on the CPU.
BOUND = 1e-5


def test_trainer_equals_transformers(tmp_path: pathlib.Path) -> None:
    folder = str(tmp_path)
    with repeatable(), launched():
        plain = transformers.Trainer(
            make_gpt(0),
            trained.make_arguments(folder, use_cpu=False),
            train_dataset=make_rows(96),
        )
        expected = trained.finish(plain)
        run = trained.train(folder, use_cpu=False)
    assert all(parameter.is_cuda for parameter in run.parameters.values())
    assert trained.measure_difference(run, expected) < BOUND


@pytest.mark.parametrize("zero", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_trainer_resumes(tmp_path: pathlib.Path, dtype: torch.dtype, zero: int) -> None:
    with repeatable():
        runs = trained.resume(str(tmp_path), zero, dtype, use_cpu=False)
    trained.check_resumed(*runs)


def test_accelerate_equals_torch() -> None:
    with repeatable():
        losses, norms, _ = accelerated.train(4, None, cpu=False)
        own = accelerated.train(4, 0, cpu=False)
    assert own[0] == pytest.approx(losses, rel=BOUND)
    assert own[1] == pytest.approx(norms, rel=BOUND)


@pytest.mark.parametrize("zero", [1, 3])
def test_accelerate_resumes(tmp_path: pathlib.Path, zero: int) -> None:
    with repeatable():
        assert accelerated.resume(str(tmp_path), zero, cpu=False)
