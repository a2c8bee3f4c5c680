#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled steps against the interpreter, over a product of configurations.

Five claims, each for every configuration:

  bound  compiled parameters and state lie within the rounding bound of the logical
         step in f64, element by element, after five steps;
  typed  they equal the interpreter at the scheduled phase bit for bit, with one,
         two or three threads a rank;
  plan   bytes by role, collectives, bytes sent and bytes copied between device and
         host equal the plan;
  exact  for gradients with exact sums, the bits do not depend on the number of ranks
         and backward passes, the stage or the order of arrivals;
  moved  the bits do not depend on offload.

Without --full the configurations are a covering subset: every pair of values occurs.
With --full they are the whole product of the user's choices. The other values (sizes,
buckets, threads, order of arrivals) are drawn from the seed, which is printed.
"""

import argparse
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
AXES = {
    "ranks": [1, 2, 3, 4],
    "stage": [0, 1, 2, 3],
    "offload": ["none", "optimizer", "parameters"],
    "backwards": ["1", "2", "4", "7", "1,4,2,7,1", "one"],
    "gradient": ["bf16", "f32", "f16"],
    "reduce_dtype": ["", "bf16"],
    "gather_dtype": ["", "bf16"],
    "dtype": ["bf16", "f32"],
    "optimizer": ["adamw", "adam", "sgd", "lion"],
    "sizes": ["1", "0,1,33,100,7,4097", "31,8193"],
    "bucket": ["25MiB", "1KiB"],
    "threads": [1, 2, 3],
    "arrivals": ["backward", "shuffled", "interleaved"],
    "hints": ["unknown", "last", "random"],
    "reduce": ["backward", "apply"],
    "unit_order": ["calls", "declared", "declared 0", "declared 2"],
}

# What --full makes the whole product of.
CHOSEN = ["ranks", "stage", "offload", "backwards", "gradient", "optimizer"]


def product(rng):
    for values in itertools.product(*(AXES[name] for name in CHOSEN)):
        row = {name: rng.choice(values) for name, values in AXES.items()}
        row.update(zip(CHOSEN, values))
        yield row


def covering(rng):
    """A set of configurations in which every pair of values occurs."""
    names = list(AXES)
    missing = {
        (a, x, b, y)
        for a, b in itertools.combinations(names, 2)
        for x in AXES[a]
        for y in AXES[b]
    }
    rows = []
    while missing:
        best, best_new = None, -1
        seed_pair = rng.choice(sorted(missing, key=str))
        for _ in range(30):
            row = {name: rng.choice(values) for name, values in AXES.items()}
            row[seed_pair[0]], row[seed_pair[2]] = seed_pair[1], seed_pair[3]
            new = sum((a, row[a], b, row[b]) in missing
                      for a, b in itertools.combinations(names, 2))
            if new > best_new:
                best, best_new = row, new
        rows.append(best)
        missing -= {(a, best[a], b, best[b])
                    for a, b in itertools.combinations(names, 2)}
    return rows


def counts_of(row):
    """The numbers of backward passes; "one" is a step that is declared one_backward."""
    return "1" if row["backwards"] == "one" else row["backwards"]


def offload_of(row):
    """Only slices of units, which are of stage 3, can be on the host."""
    is_optimizer = row["offload"] == "parameters" and row["stage"] < 3
    return "optimizer" if is_optimizer else row["offload"]


def reduce_of(row):
    """The other stages say it by themselves."""
    return row["reduce"] if row["stage"] == 3 else "backward"


def unit_order_of(row):
    """Flags for the order of units, and for how many are gathered ahead."""
    order, *ahead = row["unit_order"].split() if row["stage"] == 3 else ["calls"]
    return [f"--unit-order={order}", *(f"--prefetch-units={units}" for units in ahead)]


def unit_uses_of(row):
    """How callers use units that they may use in any order; listed where they may not."""
    return row.get("unit_uses", "listed")


def hints_of(row):
    """What callers say; nobody begins a backward pass that others are under way
    with."""
    return "unknown" if row["arrivals"] == "interleaved" else row["hints"]


class Runner:
    def __init__(self, bin_dir):
        self.bin = pathlib.Path(bin_dir)
        self.steps = tempfile.TemporaryDirectory()
        self.cache = {}

    def step(self, row, weight):
        """The file of the step that |row| describes."""
        key = (row["dtype"], row["gradient"], row["reduce_dtype"], row["optimizer"],
               row["sizes"], weight, row["backwards"] == "one", row["stage"] == 3,
               row["gather_dtype"])
        if key not in self.cache:
            path = pathlib.Path(self.steps.name) / f"step{len(self.cache)}.mlir"
            command = [
                sys.executable, ROOT / "tools/scripts/make_step.py",
                "--parameters", str(row["sizes"].count(",") + 1),
                "--sizes", row["sizes"], "--dtype", row["dtype"],
                "--gradient", row["gradient"], "--reduce-dtype", row["reduce_dtype"],
                "--normalize", weight,
                "--optimizer", ROOT / f"examples/optimizers/{row['optimizer']}.mlir",
            ]
            if row["backwards"] == "one":
                command.append("--one-backward")
            if row["stage"] == 3:
                # Of three parameters and more, some are of no unit.
                command += ["--units", str(min(row["sizes"].count(",") + 1, 2))]
                command += ["--frozen", "1", "--gather-dtype", row["gather_dtype"]]
            with open(path, "w") as out:
                subprocess.run(command, stdout=out, check=True)
            self.cache[key] = path
        return self.cache[key]

    def run(self, row, against, gradients="random", weight="mean"):
        command = [
            self.bin / "zero-run", self.step(row, weight), "--json",
            f"--ranks={row['ranks']}", f"--stage={row['stage']}",
            f"--offload={offload_of(row)}", f"--reduce={reduce_of(row)}",
            *unit_order_of(row), f"--unit-uses={unit_uses_of(row)}",
            f"--arrivals={row['arrivals']}",
            f"--accumulation={counts_of(row)}", f"--threads-per-rank={row['threads']}",
            f"--hints={hints_of(row)}", f"--measure={row['arrivals'] == 'shuffled'}",
            f"--bucket-bytes={row['bucket']}", f"--against={against}",
            f"--gradients={gradients}", "--inputs=0.0078125",
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        try:
            return json.loads(done.stdout)
        except json.JSONDecodeError:
            return {"equal": False, "first_outside": done.stderr.strip()}


    def plan(self, row):
        with tempfile.TemporaryDirectory() as folder:
            command = [
                self.bin / "zero-compile", self.step(row, "mean"), "-o", folder,
                f"--mesh=dp={row['ranks']}", f"--stage={row['stage']}",
                f"--offload={offload_of(row)}", f"--reduce={reduce_of(row)}",
                *unit_order_of(row),
                f"--bucket-bytes={row['bucket']}",
            ]
            subprocess.run(command, check=True, capture_output=True)
            return json.loads((pathlib.Path(folder) / "train.plan.json").read_text())


STEPS = 5
UNIT_USES = ["listed", "reversed", "random", "repeated"]


def stage_of(plan, rank):
    """The part of the plan that is about the pipeline stage of |rank|."""
    coordinates = {}
    for axis in reversed(plan["mesh"]):
        coordinates[axis["axis"]] = rank % axis["size"]
        rank //= axis["size"]
    for stage in plan.get("stages", []):
        if all(coordinates[on["axis"]] == on["coordinate"] for on in stage["on"]):
            return stage
    return plan


def against_plan(row, plan, counters):
    """What the counters of some rank say otherwise than the plan, or nothing."""
    if not counters:
        return "nothing was counted"
    for rank, counted in enumerate(counters):
        if wrong := rank_against_plan(row, stage_of(plan, rank), counted):
            return f"rank {rank}: {wrong}"
    return ""


def rank_against_plan(row, plan, counters):
    counts = [int(count) for count in counts_of(row).split(",")]
    counts = [counts[i % len(counts)] for i in range(STEPS)]
    traffic = plan["traffic_per_rank"]
    # zero-run gathers each unit in the forward pass, in some twice, and in the backward
    # pass.
    times = 3 if unit_uses_of(row) == "repeated" else 2
    gathered = traffic.get("unshard_all") if row["arrivals"] != "interleaved" else None
    for name in traffic["apply"]:
        expected = sum(
            traffic["first_backward"][name]
            + (count - 1) * traffic["each_later_backward"][name]
            + traffic["apply"][name]
            + times * count * (gathered[name] if gathered else 0)
            for count in counts
        )
        if counters[name] != expected:
            return f"{name}: counted {counters[name]}, planned {expected}"
    one, several = (plan["bytes_per_rank"][column]
                    for column in ("one_backward", "several_backwards"))
    for space, roles in one.items():
        for role, planned in roles.items():
            if role == "scalar":
                continue  # slots are no buffers
            if counters["bytes_now"][space][role] != planned:
                return (f"{space} {role}: {counters['bytes_now'][space][role]} bytes, "
                        f"planned {planned}")
            peak = planned
            if max(counts) > 1:
                peak = max(planned, several[space][role])
            if counters["bytes_peak"][space][role] != peak:
                return (f"{space} {role}: peak {counters['bytes_peak'][space][role]} "
                        f"bytes, planned {peak}")
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="folder of zero-run")
    parser.add_argument("--full", action="store_true", help="the whole product of the choices of users (an hour or two)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--bits", choices=["on", "off"], default="on",
                        help="off: without exact and moved, which compare the bits "
                        "of runs that the other claims make alike")
    options = parser.parse_args()

    rng = random.Random(options.seed)
    if options.full:
        rows = list(product(rng))
    else:
        rows = covering(rng)
    free = [row for row in rows if row["stage"] == 3 and row["unit_order"] == "calls"
            and row["arrivals"] != "interleaved"]
    for i, row in enumerate(free):
        row["unit_uses"] = UNIT_USES[i % len(UNIT_USES)]
    print(f"{len(rows)} configurations, seed {options.seed}", flush=True)

    runner = Runner(options.bin)
    failures = 0
    compared = uninformative = 0
    hashes = {}
    for number, row in enumerate(rows):
        if number and number % 100 == 0:
            print(f"{number} of {len(rows)} done", flush=True)
        outcomes = {claim: runner.run(row, against)
                    for claim, against in (("bound", "logical"), ("typed", "typed"))}
        for role in outcomes["bound"].get("roles", {}).values():
            compared += role["elements"]
            uninformative += role["uninformative"]
        for claim, outcome in outcomes.items():
            if not outcome["equal"]:
                failures += 1
                print(f"FAIL {claim} {row}: {outcome['first_outside']}")
        # A backward pass that is said to be the last, and is not, costs a reduction.
        difference = hints_of(row) != "random" and against_plan(
            row, runner.plan(row), outcomes["bound"].get("counters"))
        if difference:
            failures += 1
            print(f"FAIL plan {row}: {difference}")
        if options.bits == "off":
            continue
        # The sum over backward passes and ranks is the same list of integers however it
        # is dealt out, so one hash is right for all rows that share the rest. Of
        # addends that travel as bf16 the large ones are rounded.
        exact = runner.run(dict(row, reduce_dtype=""), "none", gradients="exact",
                           weight="sum")
        key = tuple(row[name] for name in ("dtype", "gradient", "optimizer", "sizes"))
        expected = hashes.setdefault(key, (exact.get("state_hash"), row))
        if exact.get("state_hash") is None or exact["state_hash"] != expected[0]:
            failures += 1
            print(f"FAIL exact {row} differs from {expected[1]}")
        other = dict(row, offload="optimizer" if row["offload"] == "none" else "none")
        moved = [runner.run(r, "none").get("state_hash") for r in (row, other)]
        if moved[0] is None or moved[0] != moved[1]:
            failures += 1
            print(f"FAIL moved {row}: {moved[0]} and {moved[1]}")
    share = 100 * uninformative / max(compared, 1)
    print(f"{compared} elements compared, the bound says nothing for {share:.2f} %")
    claims = 5 if options.bits == "on" else 3
    print(f"{len(rows) * claims - failures} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
