#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damages steps in every way that the operators know, and judges the proof.

  mutants.py --bin build/bin               a sample
  mutants.py --bin build/bin --count 2000 --schedules 0
                                           the figures of passes/prove/README.md

Each mutant changes an op or an attribute of a lowered step, or in one of the scheduled
steps what orders the calls. The verifier may refuse a
mutant. Otherwise the proof accepts or rejects it, and the interpreter decides whether
the mutant differs from the step:

- in f64 over 1, 2 and 3 backward passes, with gradients that are absent, missing and
  not finite, and with unequal numbers of backward passes;
- in the declared types, for mutants that are only less precise;
- by the plan, for mutants that only cost more;
- for scheduled steps in legal orders of streams, where each path of a step follows each
  other.

The script fails if the proof accepts a mutant that differs, or rejects one that does
not.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FATES = [
    "invalid", "caught", "harmless", "costly", "explained", "suspicious", "missed",
]  # fmt: skip

# (make_step.py, zero-mutants): few parameters, for every op is a place for a mistake.
# Longer than a rank's slice of a padded bucket, and not a multiple of it.
SIZES = "--sizes 70,1,33,7"
# The same of rows that eight ranks divide.
WIDE = "--sizes 250,230"
SCALE = f"--loss-scale {ROOT}/test/mutants/Inputs/loss_scale.mlir"
SCHEDULE = f"--schedule {ROOT}/test/mutants/Inputs/schedule.mlir"
SEEDS = [
    (f"adamw --ranks 2 --parameters 4 --optional 0 {SIZES}", "--stage=0 --until=sharded"),
    (f"adamw --ranks 3 --parameters 3 --normalize raw {SIZES}", "--stage=1 --until=sharded"),
    (f"lion --ranks 2 --parameters 4 --normalize sum {SIZES}", "--stage=2 --until=sharded"),
    (f"sgd --ranks 4 --parameters 3 --max-norm 0 {SIZES}", "--stage=2 --until=sharded"),
    (f"adam --ranks 1 --parameters 3 {SIZES}", "--stage=1 --until=sharded"),
    (f"adamw --ranks 2 --parameters 4 --optional 3 {SIZES}",
     "--stage=1 --until=placed --offload=optimizer"),
    (f"lion --ranks 3 --parameters 3 --dtype f32 {SIZES}",
     "--stage=2 --until=placed --offload=optimizer"),
    (f"adamw --ranks 2 --parameters 3 --optional 2 {SIZES}", "--stage=0 --until=lowered"),
    (f"adamw --ranks 2 --parameters 3 --optional 2 {SIZES}", "--stage=1 --until=lowered"),
    (f"adamw --ranks 2 --parameters 4 --optional 0 {SIZES}", "--stage=2 --until=lowered"),
    (f"sgd --ranks 2 --parameters 3 --reduce-dtype bf16 {SIZES}", "--stage=0 --until=lowered"),
    (f"adamw --ranks 3 --parameters 3 --reduce-dtype bf16 {SIZES}", "--stage=1 --offload=optimizer --until=lowered"),
    (f"lion --ranks 2 --parameters 4 --reduce-dtype bf16 {SIZES}", "--stage=2 --until=lowered"),
    (f"adam --ranks 2 --parameters 3 --reduce-dtype bf16 {SIZES}", "--stage=2 --until=sharded"),
    (f"adamw --ranks 2 --parameters 3 --optional 2 {SIZES}", "--stage=0 --offload=optimizer --until=lowered"),
    (f"adamw --ranks 3 --parameters 3 --optional 0 {SIZES}", "--stage=1 --offload=optimizer --until=lowered"),
    (f"adamw --ranks 2 --parameters 4 --normalize raw {SIZES}", "--stage=2 --offload=optimizer --until=lowered"),
    (f"sgd --ranks 2 --parameters 3 --dtype f32 --gradient f32 {SIZES}", "--stage=0 --until=lowered"),
    (f"sgd --ranks 3 --parameters 4 --dtype f32 --normalize sum {SIZES}", "--stage=1 --until=lowered"),
    (f"sgd --ranks 2 --parameters 3 --nonfinite apply {SIZES}", "--stage=2 --until=lowered"),
    (f"lion --ranks 4 --parameters 3 --nonfinite error {SIZES}", "--stage=1 --offload=optimizer --until=lowered"),
    (f"adam --ranks 2 --parameters 3 --max-norm 0 {SIZES}", "--stage=0 --until=lowered"),
    (f"adam --ranks 1 --parameters 3 --optional 0 {SIZES}", "--stage=1 --until=lowered"),
    (f"adam --ranks 2 --parameters 4 --dtype f32 {SIZES}", "--stage=2 --offload=optimizer --until=lowered"),
    (f"sgd --mesh edp=2,ep=2,tp=2 --classes dense,column,expert_tp --parameters 3 {WIDE}",
     "--stage=1 --until=sharded"),
    (f"sgd --mesh edp=2,tp=2 --classes dense,row,sequence --parameters 3 {WIDE}",
     "--stage=2 --until=placed --offload=optimizer"),
    (f"adam --mesh edp=2,ep=2,tp=2 --classes dense,column,expert --parameters 3 {WIDE}",
     "--stage=1 --until=lowered"),
    (f"sgd --mesh edp=2,ep=2 --classes dense,expert --parameters 2 {WIDE}",
     "--stage=0 --until=lowered"),
    (f"adam --mesh dp=2,tp=2 --classes sequence,column --parameters 2 {WIDE}",
     "--stage=2 --shard-over=dp --until=lowered"),
    (f"sgd --ranks 2 --parameters 2 --normalize tokens {SIZES}", "--stage=1 --until=lowered"),
    (f"adam --mesh edp=2,cp=2,tp=2 --classes dense,column --normalize tokens "
     f"--parameters 2 {WIDE}", "--stage=2 --until=sharded"),
    (f"sgd --ranks 2 --parameters 2 {SCALE} {SIZES}", "--stage=0 --until=lowered"),
    (f"adam --ranks 3 --parameters 2 {SCALE} {SIZES}", "--stage=2 --until=sharded"),
    (f"adam --ranks 2 --parameters 2 {SCHEDULE} {SIZES}", "--stage=1 --until=lowered"),
    (f"sgd --mesh pp=2,dp=2 --parameters 3 {SIZES} --tied 1", "--stage=2 --until=lowered"),
    (f"sgd --ranks 2 --parameters 3 --groups 2 --norm both {SIZES}", "--stage=1 --until=lowered"),
    (f"adam --mesh dp=2,pp=3 --parameters 3 --optional 1 {SIZES}",
     "--stage=1 --until=sharded"),
    (f"sgd --mesh pp=4,dp=2 --parameters 4 --activations {SIZES}",
     "--stage=1 --until=lowered"),
    (f"sgd --ranks 3 --parameters 2 {SCALE} {SCHEDULE} {SIZES}",
     "--stage=0 --until=sharded"),
    # Of one rank, or without a product, so that no other rounding hides one.
    (f"adamw --ranks 1 --parameters 2 --accumulator bf16 {SIZES}", "--stage=1 --until=lowered"),
    (f"sgd --ranks 1 --parameters 2 --accumulator bf16 --max-norm 0 {SIZES}",
     "--stage=2 --until=sharded"),
    (f"adam --ranks 2 --parameters 2 --dtype f16 --gradient f16 --accumulator f16 "
     f"--max-norm 0 {SIZES}", "--stage=2 --offload=optimizer --until=lowered"),
    (f"sgd --ranks 2 --parameters 2 --dtype f16 --gradient f16 --accumulator f16 {SIZES}",
     "--stage=0 --until=lowered"),
    (f"adamw --ranks 2 --parameters 2 --max-norm input {SIZES}", "--stage=1 --until=lowered"),
    (f"sgd --ranks 3 --parameters 3 --groups 2 --norm both --max-norm input {SIZES}",
     "--stage=2 --until=sharded"),
    (f"adam --ranks 2 --parameters 3 --groups 3 --optional 0,1 --absent skip {SIZES}",
     "--stage=1 --until=lowered"),
    (f"adam --ranks 3 --parameters 4 --groups 2 --optional 0,2 --absent skip {SIZES}",
     "--stage=2 --until=sharded"),
    (f"sgd --ranks 2 --parameters 3 --used-any 0,2 --optional 2 {SIZES}", "--stage=2 --until=lowered"),
    (f"adam --ranks 2 --parameters 3 --used-any 1 --used-twice 0 {SIZES}",
     "--stage=1 --until=lowered"),
    (f"sgd --ranks 2 --parameters 2 --used-any 0 --gradient bf16 --accumulator bf16 {SIZES}",
     "--stage=2 --until=lowered"),
    (f"adamw --ranks 1 --parameters 2 --one-backward {SIZES}", "--stage=1 --until=lowered"),
    (f"adam --ranks 2 --parameters 3 --optional 1 --one-backward {SIZES}",
     "--stage=1 --until=sharded"),
    (f"sgd --ranks 3 --parameters 3 --one-backward {SIZES}", "--stage=0 --until=lowered"),
    (f"adamw --ranks 2 --parameters 5 --units 2 {SIZES}", "--stage=3 --until=lowered"),
    (f"adamw --ranks 2 --parameters 3 --units 2 {SIZES}", "--stage=3 --reduce=apply --until=lowered"),
    (f"sgd --ranks 3 --parameters 4 --units 2 --frozen 1 --optional 1 {SIZES}", "--stage=3 --until=sharded"),
    (f"adam --ranks 2 --parameters 3 --units 3 --frozen 2 {SIZES}",
     "--stage=3 --offload=parameters --until=lowered"),
    (f"sgd --mesh pp=2,dp=2 --parameters 4 --units 4 --frozen 1 {SIZES}",
     "--stage=3 --until=lowered"),
    (f"sgd --ranks 2 --parameters 3 --units 3 --frozen 1 --dtype f32 --gather-dtype bf16 {SIZES}",
     "--stage=3 --offload=parameters --until=lowered"),
    (f"sgd --mesh edp=2,ep=2 --classes dense,expert_alone --parameters 4 {SIZES}",
     "--stage=1 --until=lowered"),
    (f"adam --mesh edp=2,ep=2 --classes dense,expert_alone --parameters 4 --normalize tokens "
     f"{SIZES}", "--stage=2 --until=sharded"),
    (f"sgd --mesh pp=2,edp=2,ep=2 --classes dense,expert_alone --parameters 8 {SIZES}",
     "--stage=2 --until=lowered"),
    (f"adamw --ranks 2 --parameters 3 --optional 1 --gradient bf16 {SIZES}",
     "--stage=1 --accumulate=apart --until=lowered"),
    (f"sgd --ranks 3 --parameters 2 --gradient bf16 --reduce-dtype bf16 {SIZES}",
     "--stage=1 --accumulate=apart --until=lowered"),
]  # fmt: skip
# Few elements: what counts is the order of calls.
TINY = "--sizes 5,1,3,2"
SCHEDULED = [
    (f"adamw --ranks 2 --parameters 4 --optional 3 {TINY}", "--stage=0"),
    (f"adamw --ranks 2 --parameters 4 --optional 3 {TINY}", "--stage=1"),
    (f"adamw --ranks 2 --parameters 4 --optional 3 {TINY}", "--stage=2"),
    (f"lion --ranks 2 --parameters 3 --reduce-dtype bf16 {TINY}", "--stage=2"),
    (f"adamw --ranks 3 --parameters 3 {TINY}", "--stage=2 --offload=optimizer"),
    (f"lion --ranks 2 --parameters 3 --dtype f32 {TINY}", "--stage=2 --offload=optimizer"),
    (f"adam --ranks 2 --parameters 3 --optional 1 {TINY}", "--stage=1 --offload=optimizer"),
    (f"adamw --ranks 2 --parameters 3 {TINY}", "--stage=0 --offload=optimizer"),
    (f"sgd --ranks 2 --parameters 3 --max-norm 0 {TINY}", "--stage=2"),
    (f"sgd --ranks 2 --parameters 3 --nonfinite apply {TINY}", "--stage=2"),
    (f"adam --ranks 1 --parameters 3 {TINY}", "--stage=2 --offload=optimizer"),
    (f"sgd --mesh pp=2,dp=2 --parameters 3 --tied 1 {TINY}", "--stage=2"),
    (f"adam --mesh dp=2,pp=3 --parameters 3 --optional 1 {TINY}",
     "--stage=1 --offload=optimizer"),
    (f"adam --mesh edp=2,ep=2,tp=2 --classes dense,column,expert --parameters 3 "
     f"--sizes 8,24,8", "--stage=1"),
    (f"sgd --mesh edp=2,tp=2 --classes dense,row --parameters 2 --sizes 8,24",
     "--stage=2 --offload=optimizer"),
    (f"adam --mesh dp=2,tp=2 --classes sequence,column --parameters 2 --sizes 8,24",
     "--stage=2 --shard-over=dp"),
    (f"sgd --ranks 2 --parameters 2 --normalize tokens {TINY}", "--stage=2"),
    (f"adam --ranks 2 --parameters 3 --groups 3 --optional 1 --absent skip {TINY}",
     "--stage=2 --offload=optimizer"),
    (f"sgd --ranks 2 --parameters 3 --used-any 1 --used-twice 0 {TINY}", "--stage=2"),
    (f"adam --ranks 2 --parameters 3 --one-backward {TINY}", "--stage=1"),
    (f"sgd --mesh pp=2,dp=2 --parameters 4 --units 4 --frozen 1 {TINY}", "--stage=3"),
    (f"sgd --ranks 2 --parameters 2 --units 2 --dtype f32 --gather-dtype bf16 {TINY}",
     "--stage=3"),
    (f"adam --ranks 2 --parameters 3 --optional 1 --gradient bf16 {TINY}",
     "--stage=1 --accumulate=apart"),
]  # fmt: skip


def run(binaries, folder, index, step, flags, sample, seed, kind):
    optimizer, *arguments = step.split()
    file = folder / f"{index}.mlir"
    with open(file, "w") as out:
        subprocess.run(
            [sys.executable, ROOT / "tools/scripts/make_step.py", "--optimizer",
             ROOT / f"examples/optimizers/{optimizer}.mlir", *arguments],
            stdout=out, check=True,
        )  # fmt: skip
    command = [
        binaries / "zero-mutants", file, *flags.split(), "--bucket-bytes=16",
        f"--sample={sample}", f"--seed={seed + index}", f"--kind={kind}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    kinds = json.loads(lines[-1]) if done.returncode == 0 else {}
    return " ".join(map(str, command)), done, lines[:-1], kinds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=600, help="number of mutants (default 600)")
    parser.add_argument(
        "--schedules", type=int, default=len(SCHEDULED),
        help="number of scheduled steps (default: all)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--kind", default="", help="draw mutants of kinds with this text only")
    parser.add_argument("--kinds", action="store_true", help="print a row for each kind")
    options = parser.parse_args()

    total = {}
    wrong = []
    scheduled = [(step, flags + " --until=scheduled") for step, flags in SCHEDULED]
    # The longest first.
    random.Random(options.seed).shuffle(scheduled)
    steps = scheduled[: options.schedules] + SEEDS
    sample = -(-options.count // len(steps))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(
        options.jobs
    ) as pool:
        jobs = [
            pool.submit(
                run, options.bin, pathlib.Path(folder), index, *step, sample,
                options.seed, options.kind,
            )
            for index, step in enumerate(steps)
        ]
        for number, job in enumerate(jobs, 1):
            command, done, lines, kinds = job.result()
            if done.returncode != 0:
                wrong.append(f"{command}: {done.stderr.strip()[:2000]}")
            wrong += [
                f"{command}\n  {line}"
                for line in lines
                if line.startswith(("missed", "suspicious"))
            ]
            for kind, counts in kinds.items():
                row = total.setdefault(kind, [0] * len(FATES))
                for i, count in enumerate(counts):
                    row[i] += count
            print(f"{number} of {len(steps)} steps", file=sys.stderr, flush=True)

    sums = [sum(row[i] for row in total.values()) for i in range(len(FATES))]
    if options.kinds:
        for kind, row in sorted(total.items()):
            print(f"{kind:60}" + "".join(f"{count:7}" for count in row))
    for fate, count in zip(FATES, sums):
        print(f"{count:7} {fate}")
    print(f"{sum(sums):7} mutants of {len(total)} kinds, seed {options.seed}")
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
