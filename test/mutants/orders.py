#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the scheduled steps of mutants.py in legal orders of streams.

usage: orders.py --bin BIN [--count N] [--jobs N]

N orders in all, of each step about as many. Every order must give the bits of program order,
and must show no race.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

import mutants


def run(
    binaries: pathlib.Path, file: pathlib.Path, step: str, flags: str, orders: int
) -> str:
    """What went wrong; empty if nothing did."""
    optimizer, *arguments = step.split()
    with file.open("w") as out:
        subprocess.run(
            [sys.executable, mutants.ROOT / "tools/scripts/make_step.py", "--optimizer",
             mutants.ROOT / f"examples/optimizers/{optimizer}.mlir", *arguments],
            stdout=out, check=True,
        )  # fmt: skip
    # A step that is `one_backward` refuses a second backward pass.
    passes = "1" if "--one-backward" in arguments else "2,1"
    command = [
        binaries / "zero-run", file, *flags.split(), "--engine=interpreter",
        "--bucket-bytes=16", "--steps=2", f"--accumulation={passes}",
        f"--orders={orders}", "--against=none",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    return f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=1000, help="number of orders in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    steps = mutants.SCHEDULED
    orders = -(-options.count // len(steps))
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(options.jobs) as pool,
    ):
        jobs = [
            pool.submit(
                run, options.bin, pathlib.Path(folder) / f"{i}.mlir", step, flags, orders
            )
            for i, (step, flags) in enumerate(steps)
        ]
        wrong = [job.result() for job in jobs if job.result()]
    print("\n".join(wrong), end="")
    print(
        f"{orders * len(steps)} orders of {len(steps)} steps: {len(wrong)} steps are wrong"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
