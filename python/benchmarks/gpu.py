#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains GPT-2 small on one GPU, with zero-opt and with torch in turn.

One row has float32 parameters under autocast, the other one bfloat16 parameters with
float32 master weights. torch clips and updates with its fused AdamW. Times are medians of
rounds of one run, from one synchronization to the next; only their ratio can be compared
with that of another run. Memory is what the GPU lacks after the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import pathlib
import statistics
import sys
import time
from typing import Any

import torch
import torch.nn.functional as F

for folder in (".", "examples"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))

from contenders import Reference, ZeroOpt  # noqa: E402
from train_gpt import Gpt  # noqa: E402

WORDS, LENGTH = 50304, 1024


class Training:
    def __init__(self, kind: str, dtype: torch.dtype, options: argparse.Namespace) -> None:
        torch.manual_seed(0)
        self.before = torch.cuda.mem_get_info()[0]
        self.options = options
        self.model = Gpt(WORDS, LENGTH, options.width, options.layers).to("cuda", dtype)
        self.context: Any = (
            torch.autocast("cuda", torch.bfloat16)
            if dtype is torch.float32
            else contextlib.nullcontext()
        )
        passes = options.accumulation
        self.contender: Any = (
            Reference(self.model, passes)
            if kind == "torch"
            else ZeroOpt(self.model, passes, stage=1)
        )
        self.generator = torch.Generator(device="cuda").manual_seed(1)
        self.loss = 0.0

    def run_round(self) -> float:
        """Milliseconds of a step."""
        steps = self.options.steps
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            for number in range(self.options.accumulation):
                tokens = torch.randint(
                    WORDS // 50,
                    (self.options.batch, LENGTH + 1),
                    device="cuda",
                    generator=self.generator,
                )
                with self.context:
                    logits = self.model(tokens[:, :-1]).flatten(0, 1)
                loss = F.cross_entropy(logits.float(), tokens[:, 1:].flatten())
                self.contender.backward(loss, number + 1 == self.options.accumulation)
            self.contender.step()
        torch.cuda.synchronize()
        milliseconds = 1e3 * (time.perf_counter() - begin) / steps
        self.loss = loss.item()
        return milliseconds

    def measure_memory(self) -> float:
        return (self.before - torch.cuda.mem_get_info()[0]) / 2**30


def compare(name: str, dtype: torch.dtype, options: argparse.Namespace) -> None:
    """In turn, not side by side: each has the memory for itself."""
    rows = {}
    for kind in ("torch", "zero-opt", "torch", "zero-opt"):
        training = Training(kind, dtype, options)
        training.run_round()
        times = [training.run_round() for _ in range(options.rounds)]
        rows.setdefault(kind, []).append(statistics.median(times))
        print(
            f"{name:9} {kind:9} {rows[kind][-1]:8.2f} ms a step, "
            f"{training.measure_memory():6.2f} GiB, loss {training.loss:.4f}",
            flush=True,
        )
        if kind == "zero-opt":
            training.contender.optimizer.close()
        del training
        gc.collect()
        torch.cuda.empty_cache()
    ratio = min(rows["torch"]) / min(rows["zero-opt"])
    print(f"{name:9} zero-opt is {ratio:.2f} times as fast", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument(
        "--accumulation", type=int, default=1, help="backward passes a step"
    )
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", type=int, default=10, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU on this machine")
        sys.exit(77)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    compare("autocast", torch.float32, options)
    compare("bfloat16", torch.bfloat16, options)


if __name__ == "__main__":
    main()
