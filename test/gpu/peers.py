#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times compiled steps against copies of the same bytes and against PyTorch.

peers.py [--device=cuda|host] [--json] FOLDER

FOLDER has libzero_rt.so and bench/, as gpu-check.sh makes them. On a GPU it needs
PyTorch, whose copies, clip_grad_norm_ and fused AdamW are the references, in the same
run. With --device=host it tries that all steps run: without a GPU its times are those of
the processor, and there is no PyTorch in them. Each time is a median of several.
"""

import argparse
import json
import os
import platform
import sys

import clocks
from compiled_step import CUDA, HOST, Step

# What AdamW reads and writes of an element, in f32: gradient, parameter, m and v.
ADAMW_BYTES = 4 + 8 + 8 + 8
# As float32 travels to the host, and bfloat16 back.
TO_HOST, FROM_HOST = 4, 2


class Table:
    def __init__(self, has_goals):
        self.has_goals = has_goals
        self.rows = []

    def add(self, what, ours, reference, ratio, goal, unit="ms"):
        """|goal| is such as '>= 0.97'; a ratio of None could not be had."""
        goal = goal if self.has_goals else ""
        self.rows.append({"what": what, "ours": ours, "reference": reference,
                          "unit": unit, "ratio": ratio, "goal": goal,
                          "met": meets(ratio, goal)})

    def print(self):
        def show(value):
            return "-" if value is None else f"{value:.3f}"
        print(f"{'what':52} {'ours':>9} {'reference':>9}  {'unit':4} {'ratio':>7} goal")
        for row in self.rows:
            met = {True: "met", False: "MISSED", None: ""}[row["met"]]
            print(f"{row['what']:52} {show(row['ours']):>9} "
                  f"{show(row['reference']):>9}  {row['unit']:4} "
                  f"{show(row['ratio']):>7} {row['goal']:8} {met}")


def meets(ratio, goal):
    if ratio is None or not goal:
        return None
    sign, bound = goal.split()
    return ratio >= float(bound) if sign == ">=" else ratio <= float(bound)


def divide(a, b):
    return a / b if a is not None and b else None


def in_ms(seconds):
    return None if seconds is None else seconds * 1e3


def time_step(clock, folder, name, device):
    """Seconds of apply on the device and on the host, elements in all, those of each
    parameter, launches, and what `time_while_busy` gives. The gradients are there, and
    what comes next waits for all parameters."""
    step = Step(folder, name, device)

    def apply():
        step.apply(clock.stream)
        step.wait(clock.stream)

    times = clock.time(apply, before=lambda: step.open(clock.stream, clock.fill))
    step.get_results()
    step.open(clock.stream, clock.fill)
    wait = clock.time_while_busy(apply)
    step.open(clock.stream, clock.fill)
    launches = clock.count_launches(apply)
    step.get_results()
    step.close()
    return times, sum(step.sizes), step.sizes, launches, wait


def measure(clock, folder, device, table):
    (update, _), elements, _, _, _ = time_step(clock, folder, "update", device)
    copy = clock.time_copy(ADAMW_BYTES * elements // 2)
    table.add("AdamW: bytes/s / those of a copy", in_ms(update), in_ms(copy),
              divide(copy, update), ">= 0.97")

    (flat, host), _, sizes, launches, wait = time_step(clock, folder, "flat", device)
    copy = clock.time_copy(4 * elements // 2)
    norm = max(flat - update, 1e-9)
    table.add("norm: bytes/s / those of a copy", in_ms(norm), in_ms(copy),
              divide(copy, norm), ">= 0.95")
    peer = clock.time_peer(sizes)
    table.add("whole step: PyTorch's time / ours, one tensor", in_ms(flat),
              in_ms(peer), divide(peer, flat), ">= 1.3")

    (ragged, _), _, sizes, _, _ = time_step(clock, folder, "ragged", device)
    table.add(f"{len(sizes)} ragged tensors / one flat", in_ms(ragged), in_ms(flat),
              divide(ragged, flat), "<= 1.1")
    peer = clock.time_peer(sizes)
    table.add(f"whole step: PyTorch's time / ours, {len(sizes)} tensors",
              in_ms(ragged), in_ms(peer), divide(peer, ragged), ">= 1.3")

    table.add("launches of kernels in an apply", launches, None, launches, "<= 4", "")
    table.add("time of the host in an apply", host * 1e6, None, host * 1e6, "<= 50",
              "us")
    table.add("time of the host while the GPU is busy / busy time", in_ms(wait[0]),
              in_ms(wait[1]), divide(*wait), "<= 0.2")

    (offload, _), elements, _, _, _ = time_step(clock, folder, "offload", device)
    parts = {
        "to the host": clock.time_copy(TO_HOST * elements, to_host=True),
        "to the device": clock.time_copy(FROM_HOST * elements, to_device=True),
        "update on the host": time_step(clocks.Host(), folder, "offload", HOST)[0][0],
    }
    slowest = max(parts, key=parts.get)
    table.add(f"offloaded step / slowest part: {slowest}", in_ms(offload),
              in_ms(parts[slowest]), divide(offload, parts[slowest]), "<= 1.1")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "host"], default="cuda")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("folder")
    options = parser.parse_args()
    if not os.path.isdir(os.path.join(options.folder, "bench")):
        parser.error(f"'{options.folder}' has no folder 'bench'; gpu-check.sh makes it")
    if options.device == "host":
        clock = clocks.Host()
    else:
        clock, why = clocks.make_cuda()
        if not clock:
            print(f"skipped: the table against PyTorch needs it: {why}",
                  file=sys.stderr)
            return 77
    # Goals are those of a GPU.
    table = Table(has_goals=options.device == "cuda")
    measure(clock, os.path.abspath(options.folder),
            CUDA if options.device == "cuda" else HOST, table)
    if options.json:
        print(json.dumps({"machine": clock.machine, "host": platform.processor(),
                          "rows": table.rows}))
    else:
        print(clock.machine)
        table.print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
