#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times compiled steps against copies of the same bytes and against PyTorch.

peers.py [--device=cuda|host] [--gpu=N] [--json] FOLDER

FOLDER has libzero_rt.so and bench/, as gpu-check.sh makes them. On a GPU it needs
PyTorch, whose copies, clip_grad_norm_ and fused AdamW are the references, in the same
run. With --device=host it tries that all steps run: without a GPU its times are those of
the processor, and there is no PyTorch in them. Each time is a median of several.
"""

import argparse
import json
import os
import sys

import clocks
from compiled_step import CUDA, HOST, Step

# What AdamW reads and writes of an element, in f32: gradient, parameter, m and v.
ADAMW_BYTES = 4 + 8 + 8 + 8
NORM_BYTES = 4
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


def time_step(clock, folder, name, device, gpu):
    """What is known of a step with its gradients in place, behind which all parameters
    are waited for."""
    step = Step(folder, name, device, gpu)

    def apply():
        step.apply(clock.stream)
        step.wait(clock.stream)

    def prepare():
        step.open(clock.stream, clock.fill)

    seen = argparse.Namespace(sizes=step.sizes, elements=sum(step.sizes))
    seen.device, seen.host = clock.time(apply, prepare)
    step.get_results()
    prepare()
    seen.while_busy = clock.time_while_busy(apply)
    prepare()
    seen.kernels = clock.list_kernels(apply)
    step.get_results()
    step.close()
    return seen


def sum_kernels(kernels, part):
    """Seconds of those with |part| in their names."""
    return kernels and sum(seconds for name, seconds in kernels if part in name)


def measure(clock, folder, device, gpu, table):
    flat = time_step(clock, folder, "flat", device, gpu)
    for what, part, size, goal in [("AdamW", "update", ADAMW_BYTES, ">= 0.97"),
                                   ("norm", "sum", NORM_BYTES, ">= 0.95")]:
        copy = clock.time_copy(size * flat.elements // 2)
        ours = sum_kernels(flat.kernels, part)
        table.add(f"{what}: bytes/s / those of a copy", in_ms(ours), in_ms(copy),
                  divide(copy, ours), goal)
    ragged = time_step(clock, folder, "ragged", device, gpu)
    for seen in (flat, ragged):
        tensors = "1 tensor" if len(seen.sizes) == 1 else f"{len(seen.sizes)} tensors"
        peer = clock.time_peer(seen.sizes)
        table.add(f"whole step: PyTorch's time / ours, {tensors}", in_ms(seen.device),
                  in_ms(peer), divide(peer, seen.device), ">= 1.3")
    table.add(f"{len(ragged.sizes)} ragged tensors / 1 flat", in_ms(ragged.device),
              in_ms(flat.device), divide(ragged.device, flat.device), "<= 1.1")

    launches = flat.kernels and len(flat.kernels)
    table.add("kernels in an apply", launches, None, launches, "<= 4", "")
    host = flat.host * 1e6
    table.add("time of the host in an apply", host, None, host, "<= 50", "us")
    # One that waits for the GPU takes as long.
    busy = flat.while_busy
    table.add("host in an apply while the GPU is busy / busy time", in_ms(busy[0]),
              in_ms(busy[1]), divide(*busy), "<= 0.2")

    offload = time_step(clock, folder, "offload", device, gpu)
    parts = {
        "to the host": clock.time_copy(TO_HOST * offload.elements, to_host=True),
        "to the device": clock.time_copy(FROM_HOST * offload.elements, to_device=True),
        "norm and update on the host":
            time_step(clocks.Host(), folder, "unoffloaded", HOST, 0).device,
    }
    slowest = max(parts, key=parts.get)
    table.add(f"offloaded step / slowest: {slowest}", in_ms(offload.device),
              in_ms(parts[slowest]), divide(offload.device, parts[slowest]), "<= 1.1")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "host"], default="cuda")
    parser.add_argument("--gpu", type=int, default=0, help="its number")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("folder")
    options = parser.parse_args()
    if not os.path.isdir(os.path.join(options.folder, "bench")):
        parser.error(f"'{options.folder}' has no folder 'bench'; gpu-check.sh makes it")
    if options.device == "host":
        clock = clocks.Host()
    else:
        clock, why = clocks.make_cuda(options.gpu)
        if not clock:
            print(f"skipped: the table against PyTorch needs it: {why}",
                  file=sys.stderr)
            return 77
    # Goals are those of a GPU.
    table = Table(has_goals=options.device == "cuda")
    measure(clock, os.path.abspath(options.folder),
            CUDA if options.device == "cuda" else HOST, options.gpu, table)
    if options.json:
        print(json.dumps({"machine": clock.machine, "rows": table.rows}))
    else:
        print(clock.machine)
        table.print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
