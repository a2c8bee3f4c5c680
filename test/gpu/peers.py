#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times compiled steps against copies of the same bytes and against PyTorch.

peers.py [--device=cuda|host] [--gpu=N] [--json] FOLDER

Each row is printed when it is measured. A failure costs only the rows of its section.
gpu-check.sh makes FOLDER, which has libzero_rt.so and bench/. On a GPU the script needs
PyTorch: the copies, clip_grad_norm_ and the fused AdamW of PyTorch are the references,
in the same run. With --device=host the script tests that all steps run: without a GPU
it times the processor and leaves PyTorch out. Each time is a median of several.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from typing import Any, Callable, Union

import clocks
from compiled_step import CUDA, HOST, Step

# What AdamW reads and writes of an element, in f32: gradient, parameter, m and v.
ADAMW_BYTES = 4 + 8 + 8 + 8
NORM_BYTES = 4
# As float32 travels to the host, and bfloat16 back.
TO_HOST, FROM_HOST = 4, 2


Clock = Union[clocks.Host, clocks.Cuda]


class Table:
    def __init__(self, has_goals: bool, prints: bool) -> None:
        self.has_goals = has_goals
        self.prints = prints
        self.rows: list[dict[str, Any]] = []
        self.failures: list[str] = []

    def begin(self, machine: str) -> None:
        self.print(machine)
        self.print(f"{'what':52} {'ours':>9} {'reference':>9}  {'unit':4} {'ratio':>7} "
                   "goal")

    def add(self, what: str, ours: float | None, reference: float | None,
            ratio: float | None, goal: str, unit: str = "ms") -> None:
        """|goal| is such as '>= 0.97'; a ratio of None could not be had."""
        goal = goal if self.has_goals else ""
        is_met = meets(ratio, goal)
        self.rows.append({"what": what, "ours": ours, "reference": reference,
                          "unit": unit, "ratio": ratio, "goal": goal, "met": is_met})
        met = {True: "met", False: "MISSED", None: ""}[is_met]
        self.print(f"{what:52} {show(ours):>9} {show(reference):>9}  {unit:4} "
                   f"{show(ratio):>7} {goal:8} {met}")

    def fail(self, section: str, error: Exception) -> None:
        self.failures.append(section)
        self.print(f"{section}: {type(error).__name__}: {error}")

    def print(self, line: str) -> None:
        if self.prints:
            print(line, flush=True)


def show(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def meets(ratio: float | None, goal: str) -> bool | None:
    if ratio is None or not goal:
        return None
    sign, bound = goal.split()
    return ratio >= float(bound) if sign == ">=" else ratio <= float(bound)


def divide(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def in_ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


@dataclass(frozen=True)
class Seen:
    sizes: list[int]
    device: float
    host: float
    while_busy: tuple[float | None, float | None]
    kernels: clocks.Kernels | None

    @property
    def elements(self) -> int:
        return sum(self.sizes)


def time_step(clock: Clock, folder: str, name: str, device: bytes, gpu: int) -> Seen:
    """What is known of a step with its gradients in place, behind which all parameters
    are waited for."""
    step = Step(folder, name, device, gpu)

    def apply() -> None:
        step.apply(clock.stream)
        step.wait(clock.stream)

    def prepare() -> None:
        step.open(clock.stream, clock.fill)

    device_seconds, host_seconds = clock.time(apply, prepare)
    step.get_results()
    prepare()
    while_busy = clock.time_while_busy(apply)
    prepare()
    kernels = clock.list_kernels(apply)
    step.get_results()
    step.close()
    return Seen(step.sizes, device_seconds, host_seconds, while_busy, kernels)


def sum_kernels(kernels: clocks.Kernels | None, part: str) -> float | None:
    """Seconds of those with |part| in their names."""
    if not kernels:
        return None
    return sum(seconds for name, seconds in kernels if part in name)


class Measurement:
    """What the sections have in common. Each adds its rows."""

    def __init__(self, clock: Clock, folder: str, device: bytes, gpu: int,
                 table: Table) -> None:
        self.clock, self.folder, self.table = clock, folder, table
        self.device, self.gpu = device, gpu
        self.flat: Seen | None = None

    def time(self, name: str) -> Seen:
        return time_step(self.clock, self.folder, f"bench/{name}", self.device, self.gpu)

    def measure_flat(self) -> None:
        self.flat = flat = self.time("flat")
        for what, part, size, goal in [("AdamW", "update", ADAMW_BYTES, ">= 0.97"),
                                       ("norm", "sum", NORM_BYTES, ">= 0.95")]:
            copy = self.clock.time_copy(size * flat.elements // 2)
            ours = sum_kernels(flat.kernels, part)
            self.table.add(f"{what}: bytes/s / those of a copy", in_ms(ours),
                           in_ms(copy), divide(copy, ours), goal)
        # A copy writes half of its bytes, and a norm reads all of them.
        reading = self.clock.time_sum(flat.elements)
        self.table.add("norm: PyTorch's time of a sum / ours", in_ms(ours), in_ms(reading),
                       divide(reading, ours), "")
        launches = len(flat.kernels) if flat.kernels else None
        self.table.add("kernels in an apply", launches, None, launches, "<= 4", "")
        host = flat.host * 1e6
        self.table.add("time of the host in an apply", host, None, host, "<= 50", "us")
        # One that waits for the GPU takes as long.
        busy = flat.while_busy
        self.table.add("host in an apply while the GPU is busy / busy time",
                       in_ms(busy[0]), in_ms(busy[1]), divide(*busy), "<= 0.2")
        self.add_peer(flat)

    def measure_ragged(self) -> None:
        ragged = self.time("ragged")
        flat = self.flat.device if self.flat else None
        self.table.add(f"{len(ragged.sizes)} ragged tensors / 1 flat",
                       in_ms(ragged.device), in_ms(flat), divide(ragged.device, flat),
                       "<= 1.1")
        self.add_peer(ragged)

    def add_peer(self, seen: Seen) -> None:
        tensors = "1 tensor" if len(seen.sizes) == 1 else f"{len(seen.sizes)} tensors"
        peer = self.clock.time_peer(seen.sizes)
        self.table.add(f"whole step: PyTorch's time / ours, {tensors}",
                       in_ms(seen.device), in_ms(peer), divide(peer, seen.device),
                       ">= 1.3")

    def measure_offload(self) -> None:
        clock, offload = self.clock, self.time("offload")
        host = time_step(clocks.Host(), self.folder, "bench/unoffloaded", HOST, 0)
        parts = {
            "to the host": clock.time_copy(TO_HOST * offload.elements, to_host=True),
            "to the device": clock.time_copy(FROM_HOST * offload.elements,
                                             to_device=True),
            "norm and update on the host": host.device,
        }
        slowest = max(parts, key=lambda part: parts[part])
        self.table.add(f"offloaded step / slowest: {slowest}", in_ms(offload.device),
                       in_ms(parts[slowest]), divide(offload.device, parts[slowest]),
                       "<= 1.1")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "host"], default="cuda")
    parser.add_argument("--gpu", type=int, default=0, help="its number")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("folder")
    options = parser.parse_args()
    if not os.path.isdir(os.path.join(options.folder, "bench")):
        parser.error(f"'{options.folder}' has no folder 'bench'; gpu-check.sh makes it")
    clock: Clock = clocks.Host()
    if options.device == "cuda":
        found, why = clocks.make_cuda(options.gpu)
        if not found:
            print(f"skipped: the table against PyTorch needs it: {why}", file=sys.stderr)
            return 77
        clock = found
    # Goals are those of a GPU.
    table = Table(has_goals=options.device == "cuda", prints=not options.json)
    table.begin(clock.machine)
    measurement = Measurement(clock, os.path.abspath(options.folder),
                              CUDA if options.device == "cuda" else HOST, options.gpu,
                              table)
    sections: dict[str, Callable[[], None]] = {
        "flat": measurement.measure_flat, "ragged": measurement.measure_ragged,
        "offload": measurement.measure_offload}
    for section, measure in sections.items():
        try:
            measure()
        except Exception as error:  # pylint: disable=broad-except
            table.fail(section, error)
    if options.json:
        print(json.dumps({"machine": clock.machine, "rows": table.rows,
                          "failed": table.failures}))
    return 1 if table.failures else 0


if __name__ == "__main__":
    sys.exit(main())
