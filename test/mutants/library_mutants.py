#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares compiled libraries with damaged programs, none of which they are.

  library_mutants.py --bin build/bin                 a sample
  library_mutants.py --bin build/bin --count 10000

A step is compiled once. Then its scheduled program is damaged in every way that the
operators of zero-mutants know, and the validator of zero-compile compares the library with
the damaged program. The script fails if a program that has other code passes for the
library.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from mutants import ROOT, SCALE, SCHEDULE

FATES = ["invalid", "caught", "same", "explained", "missed"]
TINY = "--sizes 5,1,3,2"
# (make_step.py, lowering)
STEPS = [
    (f"adamw --ranks 2 --parameters 4 --optional 3 {TINY}", "--stage=2 --offload=optimizer"),
    (f"lion --ranks 3 --parameters 3 --reduce-dtype bf16 {TINY}", "--stage=1"),
    (f"sgd --ranks 2 --parameters 3 --max-norm 0 --optional 1 {TINY}", "--stage=0"),
    (f"sgd --mesh pp=4,dp=2 --parameters 4 --activations --tied 1 {TINY}", "--stage=1"),
    (f"adam --mesh dp=2,pp=3 --parameters 3 {TINY}", "--stage=2 --offload=optimizer"),
    (f"adam --mesh edp=2,ep=2,tp=2 --classes dense,column,expert --parameters 3 "
     f"--sizes 8,24,8", "--stage=1"),
    (f"adam --mesh edp=2,cp=2,tp=2 --classes dense,column --normalize tokens "
     f"--parameters 2 --sizes 8,24", "--stage=2"),
    (f"sgd --ranks 3 --parameters 2 {SCALE} {SCHEDULE} {TINY}", "--stage=2"),
    (f"adam --ranks 2 --parameters 2 --dtype f16 --gradient f16 --accumulator f16 {TINY}",
     "--stage=0 --offload=optimizer"),
    (f"sgd --ranks 2 --parameters 5 --units 2 --frozen 2 {TINY}",
     "--stage=3 --offload=parameters"),
    (f"sgd --ranks 2 --parameters 4 --units 2 --frozen 1 --dtype f32 --gather-dtype bf16 {TINY}",
     "--stage=3 --offload=parameters"),
    (f"sgd --mesh pp=2,dp=2 --parameters 5 --units 4 --frozen 2 {TINY}", "--stage=3"),
]  # fmt: skip


def run(binaries, folder, index, step, flags, sample, seed):
    optimizer, *arguments = step.split()
    file = folder / f"{index}.mlir"
    with open(file, "w") as out:
        subprocess.run(
            [sys.executable, ROOT / "tools/scripts/make_step.py", "--optimizer",
             ROOT / f"examples/optimizers/{optimizer}.mlir", *arguments],
            stdout=out, check=True,
        )  # fmt: skip
    command = [
        binaries / "zero-library-mutants", file, *flags.split(), "--bucket-bytes=16",
        f"--sample={sample}", f"--seed={seed + index}",
    ]  # fmt: skip
    return " ".join(map(str, command)), subprocess.run(command, capture_output=True, text=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=450, help="number of mutants (default 450)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()

    total = [0] * len(FATES)
    wrong = []
    sample = -(-options.count // len(STEPS))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(
        options.jobs
    ) as pool:
        jobs = [
            pool.submit(
                run, options.bin, pathlib.Path(folder), index, *step, sample, options.seed
            )
            for index, step in enumerate(STEPS)
        ]
        for job in jobs:
            command, done = job.result()
            if done.returncode != 0:
                wrong.append(f"{command}: {done.stderr.strip()[:2000]}")
                continue
            *missed, kinds = done.stdout.splitlines()
            wrong += [f"{command}\n  {line}" for line in missed if line.startswith("missed")]
            for counts in json.loads(kinds).values():
                total = [a + b for a, b in zip(total, counts)]
    for fate, count in zip(FATES, total):
        print(f"{count:7} {fate}")
    print(f"{sum(total):7} programs, seed {options.seed}")
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
