#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts waits and records behind zrt-schedule, and behind zrt-elide-waits.

usage: count_waits.py REPOSITORY

zero-opt is the one in PATH. Prints the rows of the table in passes/README.md.
"""

import pathlib
import subprocess
import sys

UNITS = """
zero.unit @fc1 [@fc1.weight, @fc1.bias]
zero.unit @fc2 [@fc2.weight, @fc2.bias]
"""
LAST = "zero.parameter @fc2.bias : 10xbf16 optional\n"
PLANS = [
    "dp=1 stage=0",
    "dp=4 stage=0",
    "dp=4 stage=1",
    "dp=4 stage=2",
    "dp=4 stage=1 offload=optimizer",
    "dp=4 stage=2 offload=optimizer",
    "dp=4 stage=3",
    "dp=4 stage=3 offload=parameters",
]


def run(step: str, *passes: str) -> str:
    return subprocess.run(
        ["zero-opt", "-", *passes], input=step, capture_output=True, text=True, check=True
    ).stdout


def main(root: pathlib.Path) -> None:
    step = (root / "examples/quickstart.mlir").read_text()
    assert LAST in step
    print("| plan | waits | waits, elided | records | records, elided |")
    print("|---|---:|---:|---:|---:|")
    for plan in PLANS:
        logical = step.replace(LAST, LAST + UNITS) if "stage=3" in plan else step
        lower = f"--zero-lower=mesh={plan} bucket-bytes=1 until=lowered"
        every = run(logical, lower, "--zrt-schedule")
        few = run(every, "--zrt-elide-waits")
        numbers = [t.count(f" zrt.{op} ") for op in ("wait", "record") for t in (every, few)]
        print(f"| `{plan}` | {' | '.join(map(str, numbers))} |")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
