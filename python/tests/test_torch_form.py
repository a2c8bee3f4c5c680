# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""form="torch" has the bits of torch's fused AdamW on one thread."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from ranks import Workers
from torch import nn

import zero_opt.torch as zo
from zero_opt import ZeroOptError

# Of the elements that torch's kernel takes at a time.
VECTOR = {"AVX2": 8, "AVX512": 16}


def make_groups(elements: int) -> list[dict[str, object]]:
    """Groups with and without weight decay, and on both sides of torch.lerp."""
    torch.manual_seed(0)
    options = [{}, {"weight_decay": 0.0}, {"betas": (0.4, 0.95)}]
    return [{"params": [nn.Parameter(torch.randn(elements))]} | more for more in options]


def count_differences(
    steps: int, elements: int, form: str | None, zero: int = 0
) -> list[int]:
    """How many elements differ after |steps| in each group of parameters, of those that
    fill vectors, and of the rest."""
    both = [make_groups(elements) for _ in range(2)]
    options = {"lr": 1e-2, "weight_decay": 0.1}
    ours = zo.AdamW(both[0], form=form, zero=zero, **options)
    theirs = torch.optim.AdamW(both[1], fused=True, **options)
    schedules = [torch.optim.lr_scheduler.ExponentialLR(o, 0.98) for o in (ours, theirs)]
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        for group, other in zip(*both, strict=True):
            scale = 10 ** (4 * torch.rand(elements, generator=generator) - 3)
            gradient = scale * torch.randn(elements, generator=generator)
            # On several ranks, the mean of equal gradients.
            group["params"][0].grad = gradient.clone()
            other["params"][0].grad = gradient
        for optimizer, schedule in zip((ours, theirs), schedules, strict=True):
            optimizer.step()
            schedule.step()
    capability = torch.backends.cpu.get_cpu_capability()
    whole = elements - elements % VECTOR[capability]
    counts = []
    for group, other in zip(*both, strict=True):
        a, b = group["params"][0].detach(), other["params"][0].detach()
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-6)
        counts += [int((a != b)[:whole].sum()), int((a != b)[whole:].sum())]
    ours.close()
    return counts


def test_one_hundred_steps() -> None:
    assert count_differences(100, 4096, "torch") == [0] * 6


def test_without_the_form_bits_differ() -> None:
    counts = count_differences(3, 4096, None)
    assert counts[0] > 0 and counts[2] > 0


def test_only_the_tail_of_a_parameter_differs() -> None:
    """There torch's compiler fuses another product with the sum."""
    counts = count_differences(100, 4096 + 7, "torch")
    assert counts[::2] == [0] * 3
    assert sum(counts[1::2]) > 0


def test_where_torch_has_shorter_vectors() -> None:
    program = "import test_torch_form as t, torch; torch.set_num_threads(1); "
    program += "assert torch.backends.cpu.get_cpu_capability() == 'AVX2'; "
    program += "print(t.count_differences(100, 4096, 'torch'))"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"ATEN_CPU_CAPABILITY": "avx2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout == f"{[0] * 6}\n", result.stderr


def test_on_two_ranks(workers: Workers) -> None:
    counts = workers.run(count_differences, 20, 4096, "torch", 2)
    assert counts == [[0] * 6] * 2


def test_an_unknown_form() -> None:
    with pytest.raises(ZeroOptError) as raised:
        zo.AdamW(nn.Linear(2, 2), form="jax")
    assert str(raised.value) == "form is 'torch' or None, got 'jax'"
