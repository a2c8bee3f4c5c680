# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmarks run, all contenders train the same, and what can be counted is right."""

from __future__ import annotations

import pathlib
import re
import sys

import pytest
import torch
import torch.distributed as dist
from ranks import Workers

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "benchmarks"
STEPS = 3


def train(name: str) -> tuple[list[float], int, int, int]:
    """The losses of this rank, the bytes that it sent in a step, and those of a model and
    of its layers."""
    sys.path.append(str(FOLDER))
    import side_by_side
    from contenders import CONTENDERS, Reference

    work = side_by_side.Work(2, 3, 2, width=64, layers=2, dtype="float32")
    model = side_by_side.make_model(work, work.dtype)
    elements = sum(parameter.numel() for parameter in model.parameters())
    layers = sum(parameter.numel() for parameter in model.blocks.parameters())
    rank = dist.get_rank() if name else None
    contender = (
        CONTENDERS[name](model, work.passes) if name else Reference(model, work.passes * 2)
    )
    count = getattr(contender, "count_bytes_sent", side_by_side.count_bytes_sent)
    losses, sent = [], 0
    for step in range(STEPS):
        before = count()
        losses.append(side_by_side.train_step(contender, work, step, rank)["loss"])
        if name:
            dist.barrier()  # what was sent has been confirmed
        sent = count() - before
    return losses, sent, 4 * elements, 4 * layers


@pytest.fixture(scope="module")
def reference() -> list[float]:
    return train("")[0]


# In a ring of two ranks a reduction, like a gather, sends half of the gradients, and an
# all-reduce all of them. Of three backward passes stage 2 reduces each. Stage 3 gathers
# the layers twice in each, and not after the update: five halves more.
@pytest.mark.parametrize(
    "name, share",
    [
        ("zero-opt, stage 1", 1.0),
        ("zero-opt, stage 1, form of torch", 1.0),
        ("zero-opt, stage 2", 2.0),
        ("zero-opt, stage 2, offload", 2.0),
        ("zero-opt, stage 3", 2.0),
        ("DDP, clip, fused AdamW", 1.0),
        ("FSDP2, clip, fused AdamW", None),
    ],
)
def test_contender(
    workers: Workers, reference: list[float], name: str, share: float | None
) -> None:
    answers = workers.run(train, name)
    means = torch.tensor([losses for losses, *_ in answers]).mean(0)
    assert torch.allclose(means, torch.tensor(reference), rtol=0, atol=1e-5)
    if share is not None:
        for _, sent, model, layers in answers:
            more = 2.5 * layers if name == "zero-opt, stage 3" else 0
            assert sent == pytest.approx(share * model + more, rel=0.02)


def test_one_rank() -> None:
    sys.path.append(str(FOLDER))
    import one_rank

    time = r"\d+\.\d\d ms"
    assert re.fullmatch(
        rf"2 parameters of 8 elements: {time}, torch {time}, \d+\.\d\d times as fast",
        one_rank.compare_steps(2, 8, rounds=1),
    )
    assert "us more than without hooks" in one_rank.measure_gradients(3, rounds=1)
