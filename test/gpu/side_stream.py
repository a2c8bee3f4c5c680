#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients from a stream of the caller, which overwrites them after the read.

side_stream.py [--device=cuda|host] [--gpu=N] FOLDER

Gradients appear late on a stream of PyTorch. After the call the same stream sets them
to NaN. The state must equal the state of the same step on the processor, bit by bit.
The exit code is 77 without PyTorch. With --device=host the processor is compared with
itself.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import sys
from typing import Any

import clocks
from compiled_step import CUDA, HOST, Step

LIBRARY = "adamw_f32_f32_f32"
STEPS = 3
F32 = 2
LATE_SECONDS = 0.01
State = list[tuple[str, bytes]]


def make_values(step: int, parameter: int, elements: int) -> list[float]:
    """Exact in f32."""
    return [((37 * i + 11 * parameter + 5 * step) % 101 - 50) / 64
            for i in range(elements)]


class HostStream:
    """Everything is done at once."""

    number = 0

    def __init__(self, sizes: list[int]) -> None:
        self.data = [(ctypes.c_float * max(1, size))() for size in sizes]
        self.values: list[list[float]] = []

    def load(self, values: list[list[float]]) -> None:
        self.values = values

    def produce(self, parameter: int) -> int:
        for i, value in enumerate(self.values[parameter]):
            self.data[parameter][i] = value
        return ctypes.addressof(self.data[parameter])

    def spoil(self, parameter: int) -> None:
        data = self.data[parameter]
        for i in range(len(data)):
            data[i] = math.nan


class SideStream:
    """A stream of PyTorch's that is always late."""

    def __init__(self, torch: Any, clock: clocks.Cuda, sizes: list[int]) -> None:
        self.torch, self.clock = torch, clock
        self.stream = torch.cuda.Stream()
        self.number: int = self.stream.cuda_stream
        self.data = [torch.full((max(1, size),), math.nan, device="cuda")
                     for size in sizes]
        self.values: list[Any] = []
        torch.cuda.synchronize()

    def load(self, values: list[list[float]]) -> None:
        self.torch.cuda.synchronize()
        self.values = [self.torch.tensor(each, device="cuda") for each in values]
        self.torch.cuda.synchronize()

    def produce(self, parameter: int) -> int:
        data, values = self.data[parameter], self.values[parameter]
        with self.torch.cuda.stream(self.stream):
            self.clock.sleep(LATE_SECONDS)
            data[:values.numel()].copy_(values)
        address: int = data.data_ptr()
        return address

    def spoil(self, parameter: int) -> None:
        with self.torch.cuda.stream(self.stream):
            self.data[parameter].fill_(math.nan)


def run(step: Step, stream: HostStream | SideStream) -> State:
    for number in range(STEPS):
        stream.load([make_values(number, parameter, size)
                     for parameter, size in enumerate(step.sizes)])
        step.begin()
        for parameter in reversed(range(len(step.sizes))):
            step.give(parameter, F32, stream.produce(parameter), stream.number)
            stream.spoil(parameter)
        step.apply(stream.number)
        step.get_results()
    state: State = step.read_state()
    step.close()
    return state


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "host"], default="cuda")
    parser.add_argument("--gpu", type=int, default=0, help="its number")
    parser.add_argument("folder")
    options = parser.parse_args()
    clock = None
    if options.device == "cuda":
        clock, why = clocks.make_cuda(options.gpu)
        if not clock:
            print(f"skipped: a stream of the caller's needs PyTorch: {why}", flush=True)
            return 77

    on_host = Step(options.folder, LIBRARY, HOST, 0)
    expected = run(on_host, HostStream(on_host.sizes))
    if clock:
        step = Step(options.folder, LIBRARY, CUDA, options.gpu)
        state = run(step, SideStream(clock.torch, clock, step.sizes))
    else:
        step = Step(options.folder, LIBRARY, HOST, 0)
        state = run(step, HostStream(step.sizes))
    differing = [name for (name, ours), (_, theirs) in zip(state, expected)
                 if ours != theirs]
    print(f"gradients from a side stream: {len(expected)} pieces of state, "
          f"{len(differing)} differ{': ' if differing else ''}{', '.join(differing[:4])}",
          flush=True)
    return 1 if differing or len(state) != len(expected) or not state else 0


if __name__ == "__main__":
    sys.exit(main())
