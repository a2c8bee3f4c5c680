#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the work of compiling and proving is proportional to the step.

zero-work, which does what zero-compile does, runs under valgrind on steps of two sizes,
one four times the other. Each function of the compiler, of MLIR and of LLVM counts the
instructions that it executes itself. The whole run, and each function with more than 3 %
of the run, may grow by a factor of 4.6. The test counts instructions, not time, so the
result does not depend on the machine.

  work.py --bin build/bin             all cases
  work.py --bin build/bin --case groups --table
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADAMW = str(ROOT / "examples/optimizers/adamw.mlir")
MOST = 4.6  # what four times the step may take
SHARE = 0.03  # of the run: functions with less are left out
SKIPPED = 77

# A rate for each group; SIZE stands for the number of one.
SCHEDULE = (ROOT / "examples/schedules/linear.mlir").read_text()

# By case: the smaller size, options of make_step.py (SIZE stands for the size, EACH for
# the numbers of all parameters) and options of --zero-lower.
CASES: dict[str, tuple[int, list[str], str]] = {
    "parameters": (1000, ["--parameters", "SIZE"], "mesh=dp=4 stage=2"),
    "groups": (
        30,
        ["--parameters", "SIZE", "--groups", "SIZE", "--norm", "group"],
        "mesh=dp=4 stage=2",
    ),
    "schedules": (
        30,
        ["--parameters", "SIZE", "--groups", "SIZE", "--schedule", "SCHEDULES"],
        "mesh=dp=4 stage=2",
    ),
    # Each group is skipped where none of its gradients arrived.
    "skips": (
        10,
        ["--parameters", "SIZE", "--groups", "SIZE", "--optional", "EACH", "--absent", "skip"],
        "mesh=dp=4 stage=1",
    ),
    # A bucket for each parameter, and so its own collectives and events, and an addend of
    # the norm.
    "buckets": (
        60,
        ["--parameters", "SIZE", "--max-norm", "0.5"],
        "mesh=dp=4 stage=1 bucket-bytes=1",
    ),
    "stages": (
        2,
        ["--parameters", "64", "--mesh", "pp=SIZE,dp=2"],
        "stage=1 offload=optimizer",
    ),
}


def read_costs(path: pathlib.Path) -> Counter[str]:
    """Sums what cachegrind wrote for each function; the whole is under 'all'."""
    costs: Counter[str] = Counter()
    function = ""
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("fn="):
            function = line[3:]
        elif line.startswith("summary:"):
            costs["all"] = int(line.split()[1])
        elif line[:1].isdigit():
            costs[function] += int(line.split()[1])
    # Many functions without a name are one here.
    costs.pop("???", None)
    return costs


def write_step(case: str, size: int, folder: pathlib.Path) -> list[str]:
    """Writes the step of |case|; the arguments of zero-work."""
    _, make_options, options = CASES[case]
    step = folder / f"{case}{size}.mlir"
    schedules = folder / f"{case}{size}.schedules.mlir"
    if "SCHEDULES" in make_options:
        one = "zero.schedule @lr"
        schedules.write_text(
            "".join(SCHEDULE.replace(one, one + str(i)) for i in range(size))
        )
    make = [sys.executable, str(ROOT / "tools/scripts/make_step.py")]
    for option in make_options:
        option = option.replace("EACH", ",".join(map(str, range(size))))
        make.append(
            option.replace("SIZE", str(size)).replace("SCHEDULES", str(schedules))
        )
    with step.open("w") as file:
        subprocess.run([*make, "--optimizer", ADAMW], stdout=file, check=True)
    return [str(step), options]


def count(binaries: pathlib.Path, cases: list[str]) -> dict[str, list[Counter[str]]]:
    """By case: instructions of the smaller and of the larger compile by function."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        runs = [
            write_step(case, CASES[case][0] * factor, folder)
            for case in cases
            for factor in (1, 4)
        ]
        valgrind = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=no"]
        valgrind.append(f"--cachegrind-out-file={folder}/costs.%p")
        done = subprocess.run(
            [*valgrind, str(binaries / "zero-work"), *sum(runs, [])],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"work.py: zero-work fails:\n{done.stderr}")
        inherited, *costs = [
            read_costs(folder / f"costs.{process}") for process in done.stdout.split()
        ]
    for one in costs:
        one.subtract(inherited)
    return {case: costs[2 * i : 2 * i + 2] for i, case in enumerate(cases)}


def shorten(name: str) -> str:
    """A name without the arguments of templates."""
    while re.search(r"<[^<>]*>", name):
        name = re.sub(r"<[^<>]*>", "", name)
    return name[:90]


def check(case: str, small: Counter[str], large: Counter[str], table: bool) -> bool:
    size = CASES[case][0]
    rows = [
        (cost / max(small[name], 1), cost / large["all"], name)
        for name, cost in large.items()
        if cost >= SHARE * large["all"]
    ]
    rows.sort(reverse=True)
    print(
        f"{case}: {small['all'] / 1e6:.0f} million instructions for {size}, "
        f"{large['all'] / 1e6:.0f} for {4 * size}"
    )
    good = all(factor <= MOST for factor, _, _ in rows)
    for factor, share, name in rows:
        if table or factor > MOST:
            print(f"  {factor:6.2f} times, {share:4.0%} of all: {shorten(name)}")
    if not good:
        print(f"  expected at most {MOST} times, as the step is 4 times as large")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--case", choices=sorted(CASES), help="run only this case")
    parser.add_argument("--table", action="store_true", help="print the functions within the limit")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return SKIPPED
    cases = [options.case] if options.case else list(CASES)
    counts = count(options.bin, cases)
    results = [check(case, *counts[case], options.table) for case in cases]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
