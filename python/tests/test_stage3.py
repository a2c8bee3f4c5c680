# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ZeRO stage 3 has the bits of stage 2."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import pytest
import torch
from ranks import Workers
from units import Result, Training, make_deep, make_optimizer, train_units

# What stage 2 made, by what it depends on.
_known: dict[tuple[Workers, Training, Callable[[int, Training], Result]], list[Result]] = {}


def train_at_stage_2(
    workers: Workers, training: Training, train: Callable[[int, Training], Result]
) -> list[Result]:
    plain = dataclasses.replace(
        training,
        offload=bool(training.offload),
        keep=False,
        unit_order="calls",
        prefetch=1,
        whole_below=0,
    )
    key = (workers, plain, train)
    if key not in _known:
        _known[key] = workers.run(train, 2, plain)
    return _known[key]


def check_equal(
    workers: Workers,
    training: Training,
    train: Callable[[int, Training], Result] = train_units,
) -> None:
    found = workers.run(train, 3, training)
    expected = train_at_stage_2(workers, training, train)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.losses == theirs.losses
        # Buckets are others, and so is the order of the squares in f64.
        assert mine.norms == pytest.approx(theirs.norms, rel=1e-14)
    assert all(result.model == {} for result in found[1:])
    assert list(found[0].model) == list(expected[0].model)
    for name, value in expected[0].model.items():
        assert torch.equal(found[0].model[name], value), name


@pytest.mark.parametrize("accumulation", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_two_ranks(workers: Workers, dtype: torch.dtype, accumulation: int) -> None:
    check_equal(workers, Training(dtype, accumulation))


def test_without_clipping_and_with_offload(workers: Workers) -> None:
    check_equal(workers, Training(max_norm=None))
    check_equal(workers, Training(torch.bfloat16, 2, offload=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_parameters_on_the_host(workers: Workers, dtype: torch.dtype) -> None:
    check_equal(workers, Training(dtype, 2, offload="parameters"))


@pytest.mark.parametrize("keep", ["last", True])
def test_units_that_are_kept(workers: Workers, keep: bool | str) -> None:
    check_equal(workers, Training(accumulation=3, keep=keep, is_uneven=True))
    check_equal(workers, Training(torch.bfloat16, keep=keep, offload="parameters"))
    check_equal(workers, Training(accumulation=2, keep=keep, evaluates=True))
    check_equal(workers, Training(keep=keep, checkpointing="re-entrant"))
    check_equal(workers, Training(keep=keep, checkpointing="not re-entrant"))


@pytest.mark.parametrize("keep", [False, "last", True])
def test_units_in_a_declared_order(workers: Workers, keep: bool | str) -> None:
    """Also where a backward pass ends before the first layers."""
    make = functools.partial(
        dataclasses.replace, Training(accumulation=3, keep=keep, unit_order="declared")
    )
    check_equal(workers, make(is_uneven=True, evaluates=True))
    check_equal(workers, make(frozen_layer=0, words_are_frozen=True))
    if keep is not True:
        check_equal(workers, make(checkpointing="not re-entrant", evaluates=True))
    if not keep:
        check_equal(workers, make(checkpointing="re-entrant"))
        check_equal(workers, make(dtype=torch.bfloat16, offload="parameters"))


@pytest.mark.parametrize("prefetch", [0, 2, 7])
def test_so_many_units_are_gathered_ahead(workers: Workers, prefetch: int) -> None:
    make = functools.partial(
        dataclasses.replace,
        Training(accumulation=2, unit_order="declared", prefetch=prefetch),
    )
    check_equal(workers, make(evaluates=True, is_uneven=True))
    check_equal(workers, make(keep="last"))


def read_small(rank: int) -> list[bool]:
    """Whether parameters of a layer have their values between steps."""
    model = make_deep(Training())
    optimizer = make_optimizer(model, 3, whole_below=100)
    layer = model.layers[1]
    small, large = (
        [layer.adapter.bias, layer.frozen],
        [layer.adapter.weight, layer.base.weight],
    )
    read = [bool(p.isfinite().all()) for p in [*small, *large]]
    optimizer.close()
    return read


def test_small_parameters_stay_whole(workers: Workers) -> None:
    check_equal(workers, Training(accumulation=2, whole_below=100))
    check_equal(workers, Training(torch.bfloat16, whole_below=100, offload="parameters"))
    assert workers.run(read_small, 0) == [[True, True, False, False]] * 2


@pytest.mark.parametrize("layer", [0, 2])
def test_a_layer_that_is_frozen(workers: Workers, layer: int) -> None:
    """Units without a trained parameter. Nothing before the first one is trained but the
    embedding."""
    check_equal(workers, Training(frozen_layer=layer, accumulation=2))
    check_equal(workers, Training(torch.bfloat16, frozen_layer=layer, offload="parameters"))
    check_equal(workers, Training(frozen_layer=layer, keep="last", evaluates=True))
    check_equal(workers, Training(frozen_layer=layer, checkpointing="re-entrant"))


@pytest.mark.parametrize("checkpointing", ["re-entrant", "not re-entrant"])
def test_checkpointing(workers: Workers, checkpointing: str) -> None:
    """The forward pass of a unit runs again within the backward pass."""
    check_equal(workers, Training(checkpointing=checkpointing, accumulation=2))


def test_compiled_layers(workers: Workers) -> None:
    check_equal(workers, Training(accumulation=2, backend="aot_eager", evaluates=True))


def test_forward_passes_without_a_backward_pass(workers: Workers) -> None:
    check_equal(workers, Training(evaluates=True, accumulation=2))


def test_three_ranks(three_workers: Workers) -> None:
    """Slices of unequal length."""
    check_equal(three_workers, Training(accumulation=2))
    check_equal(three_workers, Training(torch.bfloat16, checkpointing="re-entrant"))


def test_a_loss_scale(workers: Workers) -> None:
    check_equal(workers, Training(torch.float16, loss_scale="dynamic", accumulation=2))


def test_a_gradient_on_one_rank_only(workers: Workers) -> None:
    check_equal(workers, Training(is_uneven=True, accumulation=2))


def check_reduced_once(
    workers: Workers,
    training: Training,
    train: Callable[[int, Training], Result] = train_units,
) -> None:
    """Sums over backward passes come before those over ranks, as at stage 1."""
    found = workers.run(train, 3, dataclasses.replace(training, reduce="apply"))
    stage1 = dataclasses.replace(training, offload=bool(training.offload))
    expected = workers.run(train, 1, stage1)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.losses == theirs.losses
    for name, value in expected[0].model.items():
        assert torch.equal(found[0].model[name], value), name


def test_gradients_that_are_reduced_once_a_step(workers: Workers) -> None:
    check_reduced_once(workers, Training(accumulation=3, is_uneven=True))
    check_reduced_once(
        workers, Training(torch.bfloat16, 2, offload="parameters", keep="last")
    )
    check_reduced_once(workers, Training(accumulation=2, checkpointing="re-entrant"))


def check_equal_alone(
    training: Training, train: Callable[[int, Training], Result] = train_units
) -> None:
    stage2 = dataclasses.replace(training, offload=bool(training.offload))
    mine, theirs = train(3, training), train(2, stage2)
    assert mine.losses == theirs.losses
    for name, value in theirs.model.items():
        assert torch.equal(mine.model[name], value), name


def test_one_rank() -> None:
    """A rank that is alone has all parameters whole."""
    for offload in (False, True, "parameters"):
        check_equal_alone(Training(accumulation=2, offload=offload, reduce="apply"))
        check_equal_alone(Training(offload=offload, unit_order="declared"))
        check_equal_alone(Training(accumulation=2, offload=offload))
