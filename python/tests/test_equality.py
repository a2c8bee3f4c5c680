# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps against torch.optim.AdamW and clip_grad_norm_ in f64, element by element."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import reference
import torch
from ranks import Workers
from training import Case, train

DTYPES = [torch.float32, torch.bfloat16]


@pytest.mark.parametrize("accumulation", [1, 4])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("model", ["mlp", "gpt"])
def test_one_rank(model: str, dtype: torch.dtype, accumulation: int) -> None:
    case = Case(model, dtype, accumulation, zero=1)
    record = train(case)
    assert not record.frozen_changed
    assert reference.check([record], case.max_norm) > 0


@pytest.mark.parametrize("accumulation", [1, 4])
@pytest.mark.parametrize("zero", [0, 1, 2])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("model", ["mlp", "gpt"])
def test_two_ranks(
    workers: Workers, model: str, dtype: torch.dtype, zero: int, accumulation: int
) -> None:
    case = Case(model, dtype, accumulation, zero)
    records = workers.run(train, case)
    assert not any(record.frozen_changed for record in records)
    assert reference.check(records, case.max_norm) > 0


@pytest.mark.parametrize("zero", [0, 1, 2])
def test_a_gradient_on_one_rank_only(workers: Workers, zero: int) -> None:
    """The other rank has zeros in the mean."""
    case = Case("mlp", torch.bfloat16, 2, zero, is_uneven=True)
    assert reference.check(workers.run(train, case), case.max_norm) > 0


@pytest.mark.parametrize("zero", [0, 1])
def test_one_backward(workers: Workers, zero: int) -> None:
    """Gradients in bfloat16 stay as they arrive, and the bits are those of any number."""
    check_bits(Case("gpt", torch.bfloat16, 1, zero), workers, one_backward=True)


@pytest.mark.parametrize("accumulation", [1, 4])
def test_accumulate_apart(workers: Workers, accumulation: int) -> None:
    """Gradients stay as they arrive until a second backward pass comes."""
    case = Case("gpt", torch.bfloat16, accumulation, zero=1)
    check_bits(case, workers, accumulate="apart")


def check_bits(case: Case, workers: Workers, **changes: Any) -> None:
    """With |changes| of |case| all bits stay."""
    records = workers.run(train, dataclasses.replace(case, **changes))
    assert reference.check(records, case.max_norm) > 0
    for mine, other in zip(records, workers.run(train, case), strict=True):
        for a, b in zip(mine.parameters, other.parameters, strict=True):
            assert all(torch.equal(a[name], b[name]) for name in b)


@pytest.mark.parametrize("zero", [0, 1, 2])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_offload(workers: Workers, dtype: torch.dtype, zero: int) -> None:
    check_bits(Case("gpt", dtype, 2, zero), workers, offload=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_offload_alone(dtype: torch.dtype) -> None:
    case = Case("mlp", dtype, 2, zero=1, offload=True)
    assert reference.check([train(case)], case.max_norm) > 0


def test_one_backward_alone() -> None:
    case = Case("mlp", torch.bfloat16, 1, zero=1, one_backward=True)
    assert reference.check([train(case)], case.max_norm) > 0


def test_three_ranks(three_workers: Workers) -> None:
    """Slices of unequal length, and a mean whose factor is no power of two."""
    for zero, dtype in ((1, torch.float32), (2, torch.bfloat16)):
        case = Case("gpt", dtype, 2, zero)
        assert reference.check(three_workers.run(train, case), case.max_norm) > 0


def test_without_clipping(workers: Workers) -> None:
    case = Case("mlp", torch.float32, accumulation=2, zero=2, max_norm=None)
    assert reference.check(workers.run(train, case), None) > 0


def test_the_bound_finds_a_wrong_factor() -> None:
    """The reference is no rubber stamp: a gradient that is lost or doubled is found."""
    record = train(Case("mlp", torch.float32, accumulation=2, zero=1))
    name = "last.weight"
    for factor in (0.999, 2.0):
        gradient = record.gradients[1][0][name]
        record.gradients[1][0][name] = gradient * factor
        with pytest.raises(AssertionError):
            reference.check([record], 0.5)
        record.gradients[1][0][name] = gradient
    assert reference.check([record], 0.5) > 0
