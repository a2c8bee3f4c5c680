#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times step() on one rank without a model, and what a gradient costs in Python.

zero-opt and torch do the same in turn: gradients in bfloat16, clipping, AdamW on float32
master weights, parameters in bfloat16. Both are medians of one run; only their ratio can
be compared with that of another run.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from contenders import Reference  # noqa: E402

import zero_opt.torch as zo  # noqa: E402


class Parameters(torch.nn.Module):
    def __init__(self, count: int, elements: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.list = torch.nn.ParameterList(
            torch.zeros(elements, dtype=dtype) for _ in range(count)
        )


def measure(*functions: Callable[[], float], rounds: int) -> list[list[float]]:
    """The seconds of each function in each round."""
    times = [[function() for function in functions] for _ in range(rounds + 3)]
    return [list(column) for column in zip(*times[3:], strict=True)]


def describe_ratio(name: str, ours: list[float], torchs: list[float]) -> str:
    ratio = statistics.median(b / a for a, b in zip(ours, torchs, strict=True))
    mine, other = (1e3 * statistics.median(times) for times in (ours, torchs))
    return f"{name}: {mine:.2f} ms, torch {other:.2f} ms, {ratio:.2f} times as fast"


def compare_steps(count: int, elements: int, rounds: int) -> str:
    ours, theirs = (Parameters(count, elements, torch.bfloat16) for _ in range(2))
    gradients = [torch.randn(elements).bfloat16() for _ in range(count)]
    optimizer = zo.AdamW(ours, lr=1e-3, weight_decay=0.1, max_norm=1.0, zero=1)
    reference = Reference(theirs, passes=1)

    def step(model: Parameters, call: Callable[[], object]) -> float:
        for parameter, gradient in zip(model.list, gradients, strict=True):
            parameter.grad = gradient.clone()
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    times = measure(
        lambda: step(ours, optimizer.step),
        lambda: step(theirs, reference.step),
        rounds=rounds,
    )
    optimizer.close()
    return describe_ratio(f"{count} parameters of {elements} elements", *times)


def measure_gradients(count: int, rounds: int) -> str:
    """Backward passes over many parameters of one element, with the hooks of the package,
    with hooks that do nothing, and without."""
    models = [Parameters(count, 1, torch.float32) for _ in range(3)]
    optimizer = zo.SGD(models[0], lr=1e-3)

    def forget(parameter: torch.Tensor) -> None:
        parameter.grad = None

    for parameter in models[1].list:
        parameter.register_post_accumulate_grad_hook(forget)

    def backward(model: Parameters, finish: Callable[[], object]) -> float:
        loss = torch.cat(list(model.list)).sum()
        begin = time.perf_counter()
        loss.backward()
        seconds = time.perf_counter() - begin
        finish()
        return seconds

    hooked, empty, plain = measure(
        lambda: backward(models[0], optimizer.step),
        lambda: backward(models[1], lambda: None),
        lambda: backward(models[2], models[2].zero_grad),
        rounds=rounds,
    )

    def difference(a: list[float], b: list[float]) -> float:
        pairs = zip(a, b, strict=True)
        return statistics.median(1e6 * (x - y) / count for x, y in pairs)

    return (
        f"a gradient costs {difference(hooked, plain):.1f} us more than without hooks, "
        f"of which a hook that does nothing takes {difference(empty, plain):.1f} us"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--elements", type=int, default=4 << 20, help="of a large one")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(compare_steps(8, options.elements, options.rounds), flush=True)
    print(compare_steps(1000, 256, options.rounds), flush=True)
    print(measure_gradients(1000, options.rounds))


if __name__ == "__main__":
    main()
