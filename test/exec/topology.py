#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled steps on meshes of several axes against the unsharded step.

Each mesh has parameters of every class that the mesh allows: whole on all ranks, rows
and columns of tensor-parallel matrices, key and value weights with fewer heads than
ranks, layer norms under sequence parallelism, experts in four layouts. Claims, for
each mesh, ZeRO stage, offload and choice of axes to shard over:

  bound  norm, parameters and state lie within the rounding bound of the logical step
         in f64, element by element, on every rank;
  typed  they equal the interpreter at the scheduled phase bit for bit;
  plan   bytes, collectives and bytes sent equal the plan;
  one    each rank takes part in exactly one scalar all-reduce a step, or in none if
         the mesh has one rank;
  exact  for gradients with exact sums, the bits do not depend on stage, offload,
         choice of axes, order of gradients and which backward passes are hinted as
         the last;
  saved  a checkpoint of any of them, loaded by the next one, leads to these bits.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from claims import Claims
from equality import STEPS, against_plan

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLASSES = "dense,sequence,row,column,kv,expert,expert_tp,expert_wide"
# A mesh, and the axes to shard over besides all of them.
MESHES = {
    "dp=3": [],
    "cp=4": [],
    "tp=3,pp=1": [],
    "edp=1,ep=1,cp=1,tp=1": [],
    "edp=2,ep=2": ["edp"],
    "ep=4,edp=1": [],
    "dp=2,tp=4": ["dp"],
    "dp=2,cp=2,tp=2": ["cp,dp"],
    "edp=2,ep=4,tp=2": ["edp", "ep"],
    "ep=2,tp=2,edp=3": ["edp"],
    "edp=3,ep=1,tp=5": [],
    "edp=2,ep=2,cp=2,tp=2": ["edp,cp"],
    "dp=2,sub0=2,sub1=2": [],
    "sub0=1,sub1=4,dp=4": ["dp"],
    "pp=3,dp=2": [],
    "pp=2,edp=2,ep=2,tp=2": ["edp"],
    "tp=2,pp=4,cp=2": [],
    "sub1=1,dp=1,pp=5": [],
}
# Meshes once more, with one tensor for each expert, on the ranks that have it. Such
# parameters are in no unit, and stages 0 to 2 have none.
ALONE = ["edp=2,ep=2", "ep=2,tp=2,edp=3", "ep=3,edp=1", "pp=2,edp=2,ep=2,tp=2"]
ALONE_CLASSES = "dense,expert_alone,column,expert_alone"
BACKWARDS = "1,3,2"


def write_step(mesh, weight, path, gathers_bf16, classes=CLASSES):
    command = [
        sys.executable, ROOT / "tools/scripts/make_step.py", "--mesh", mesh,
        "--classes", classes, "--parameters", "17", "--sizes", "33,1,7,130,0",
        "--normalize", weight, "--groups", "3", "--optional", "2,9", "--tied", "0,7",
        "--optimizer", ROOT / "examples/optimizers/adamw.mlir",
    ]
    # Of 17 parameters the last one is of no unit. Where a unit is on several pipeline
    # stages, it is one for each.
    if classes == CLASSES:
        command += ["--units", "4", "--frozen", "2"]
    if gathers_bf16:
        command += ["--dtype", "f32", "--gather-dtype", "bf16"]
    with open(path, "w") as out:
        subprocess.run(command, stdout=out, check=True)


class Runner:
    def __init__(self, bin_dir, folder):
        self.bin = pathlib.Path(bin_dir)
        self.folder = pathlib.Path(folder)
        self.compiled = {}

    def run(self, step, flags, against, gradients="random", arrivals="interleaved",
            hints="unknown", more=()):
        library = self.compile(step, flags) / "libtrain.so"
        command = [
            self.bin / "zero-run", step, "--json", *flags, f"--against={against}",
            f"--library={library}",
            f"--accumulation={BACKWARDS}", f"--gradients={gradients}",
            "--bucket-bytes=2KiB", f"--arrivals={arrivals}", f"--hints={hints}",
            f"--measure={hints != 'unknown'}", *more,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        try:
            return json.loads(done.stdout)
        except json.JSONDecodeError:
            return {"equal": False, "first_outside": done.stderr.strip()}

    def compile(self, step, flags):
        """The folder of the compiled step. It is compiled once for all its runs."""
        key = (step, *flags)
        if key not in self.compiled:
            out = self.folder / f"out{len(self.compiled)}"
            command = [self.bin / "zero-compile", step, "-o", out, *flags,
                       "--bucket-bytes=2KiB"]
            subprocess.run(command, check=True, capture_output=True)
            self.compiled[key] = out
        return self.compiled[key]

    def plan(self, step, flags):
        out = self.compile(step, flags)
        return json.loads((out / "train.plan.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="folder of zero-run")
    parser.add_argument("--meshes", help="substrings of meshes to try, separated by ;")
    options = parser.parse_args()
    wanted = (options.meshes or "").split(";")
    meshes = [(mesh, choices, CLASSES) for mesh, choices in MESHES.items()]
    meshes += [(mesh, [], ALONE_CLASSES) for mesh in ALONE]
    meshes = [one for one in meshes if any(text in one[0] for text in wanted)]

    claims = Claims()
    claim = claims.claim
    elements = 0

    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options.bin, folder)
        for number, (mesh, choices, classes) in enumerate(meshes):
            step = summed = pathlib.Path(folder) / f"step{number}.mlir"
            # Every other mesh counts tokens, in whole numbers: sums are exact, too.
            gathers_bf16 = number % 3 == 1
            weight = "tokens" if number % 2 else "mean"
            write_step(mesh, weight, step, gathers_bf16, classes)
            if number % 2 == 0:
                summed = pathlib.Path(folder) / f"sum{number}.mlir"
                write_step(mesh, "sum", summed, gathers_bf16, classes)
            runs = [["--stage=0"]]
            for stage in (1, 2):
                for axes in ["", *choices]:
                    for offload in ("none", "optimizer"):
                        over = [f"--shard-over={axes}"] * bool(axes)
                        runs.append([f"--stage={stage}", f"--offload={offload}", *over])
            if classes == CLASSES:
                runs += [["--stage=3", *[f"--shard-over={axes}"] * bool(axes),
                          f"--offload={('none', 'parameters')[(i + number) % 2]}",
                      f"--reduce={('backward', 'apply')[(i + number // 2) % 2]}",
                      *(["--unit-order=declared", f"--prefetch-units={i % 3}"]
                        * ((i + number // 4) % 2))]
                     for i, axes in enumerate(["", *choices])]
            state = runner.run(summed, runs[0], "none", "exact").get("state_hash")
            saved = pathlib.Path(folder) / f"checkpoint{number}"
            runner.run(summed, runs[-1], "none", "exact",
                       more=["--steps=2", f"--save={saved}"])
            for flags in runs:
                what = f"{mesh} {' '.join(flags)}"
                # A unit is resharded in the backward pass that is open.
                arrivals = "shuffled" if "--stage=3" in flags else "interleaved"
                bound = runner.run(step, flags, "logical", arrivals=arrivals)
                elements += sum(r["elements"] for r in bound.get("roles", {}).values())
                claim("bound", what, bound["equal"], bound.get("first_outside"))
                typed = runner.run(step, flags, "typed", arrivals=arrivals)
                claim("typed", what, typed["equal"], typed.get("first_outside"))
                counters = bound.get("counters")
                plan = runner.plan(step, flags)
                wrong = against_plan(
                    {"backwards": BACKWARDS, "arrivals": arrivals}, plan, counters)
                claim("plan", what, not wrong, wrong)
                one = [rank["scalar_all_reduces"] for rank in counters or []]
                expected = STEPS if len(one) > 1 else 0
                claim("one", what, set(one) == {expected},
                      f"{one} in {STEPS} steps, expected {expected}")
                # Loads what the configuration before has saved, and goes on.
                loads = [f"--load={saved}", f"--steps={STEPS - 2}"]
                loaded = runner.run(summed, flags, "none", "exact", more=loads)
                again = runner.run(summed, flags, "none", "exact",
                                   more=["--steps=2", f"--save={saved}"])
                claim("saved", what,
                      again["equal"] and loaded.get("state_hash") == state,
                      loaded.get("first_outside"))
                # Backward passes that are said to be the last, and are or are not.
                exact = runner.run(summed, flags, "typed", "exact", "shuffled", "random")
                claim("exact", what, exact["equal"] and exact["state_hash"] == state,
                      exact.get("first_outside"))
    print(f"{len(meshes)} meshes, {elements} elements compared")
    return claims.finish()


if __name__ == "__main__":
    sys.exit(main())
