#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random well-typed logical steps: the proof against the results.

Each step is proved after every pass to the scheduled phase. The interpreter then runs
it at that phase, or at an earlier one, and the result must lie within the rounding
bound of the logical step in f64. At the scheduled phase the result must have the same
bits in legal orders of streams. Every tenth step is compiled and run instead. Its
gradients arrive in another order on each rank, and those of different backward passes
are interleaved. A step that the proof rejects is a false alarm. A step with a wrong
result is a wrong step that the proof accepted. generated.py makes such a step smaller
while it stays wrong, and writes it to the current folder with a command that shows the
error.

  generated.py --bin build/bin --count 500
  generated.py --bin build/bin --count 100000 --progress FILE

Step N depends only on N and the seed. With --progress, generated.py skips the steps
that FILE lists, so a long run may be stopped at any time.
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
sys.path.insert(0, str(ROOT / "tools/scripts"))
import make_step  # noqa: E402

BATCH = 50
ORDERS = 8  # of streams, for each step that is run at the scheduled phase


def draw_mesh(rng):
    """A mesh of several axes, as make_step.py takes it; of up to 12 ranks."""
    axes = rng.choice([["dp"], ["edp", "ep"], ["edp", "ep"], []])
    axes = axes + [axis for axis in ["cp"] if rng.random() < 0.3]
    axes = axes + rng.choice([[], ["tp"], ["tp"], ["sub0", "sub1"]])
    axes = axes + [axis for axis in ["pp"] if rng.random() < 0.3]
    rng.shuffle(axes)
    mesh, ranks = {}, 1
    for axis in axes or ["dp"]:
        mesh[axis] = rng.choice([s for s in [1, 2, 2, 3, 4] if s * ranks <= 12] or [1])
        ranks *= mesh[axis]
    return mesh


def draw_units(rng, parameters):
    """Units of parameters that need not follow each other; some are of no unit."""
    inside = [i for i in range(parameters) if rng.random() < 0.8]
    if rng.random() < 0.5:
        rng.shuffle(inside)
    count = min(rng.randint(1, 4), len(inside))
    cuts = sorted(rng.sample(range(1, len(inside)), count - 1)) if count else []
    return [inside[a:b] for a, b in zip([0, *cuts], [*cuts, None]) if count]


def draw(rng):
    parameters = rng.choice([1, 1, 2, 3, 5, 8, 13])
    sizes = [rng.choice([0, 1, 2, 31, 33, 64, 100, 255, 1021]) for _ in range(parameters)]
    if rng.random() < 0.02:
        sizes[0] = rng.choice([4097, 8192, 20000])
    some = [str(i) for i in range(parameters) if rng.random() < 0.25]
    twice = [str(i) for i in range(parameters) if rng.random() < 0.1]
    pieces = [str(i) for i in range(parameters) if rng.random() < 0.1]
    dtype = rng.choice(["bf16", "f32", "f16"])
    gradient = rng.choice(["bf16", "f32", "f16"])
    names = rng.sample(["adamw", "adam", "sgd", "lion"], rng.choice([1, 1, 2]))
    step = argparse.Namespace(
        parameters=parameters,
        sizes=",".join(map(str, sizes)),
        ranks=rng.choice([1, 2, 2, 3, 4, 5, 7, 8, 16]),
        dtype=dtype,
        gradient=gradient,
        accumulator=rng.choice(["f32", "f32", "f32", "f64", gradient]),
        reduce_dtype="",
        normalize=rng.choice(["mean", "mean", "raw", "sum", "tokens"]),
        optional=",".join(some),
        used_twice=",".join(twice),
        used_any=",".join(pieces),
        activations=False,
        nonfinite=rng.choice(["skip", "skip", "apply", "error"]),
        max_norm=rng.choice([0, 0.5, 1.0, 1000.0, "input"]),
        groups=rng.choice([1, 2, 2, 3]),
        norm=rng.choice(["all", "all", "group", "both"]),
        absent=rng.choice(["zero", "skip"]),
        optimizer=[ROOT / f"examples/optimizers/{name}.mlir" for name in names],
        mesh="",
        classes="dense",
        loss_scale="",
        schedule=[],
        tied="",
        one_backward=False,
        units=[],
        unit_orders=0,
        frozen=0,
        gather_dtype="",
    )
    if step.norm == "both":
        step.nonfinite = rng.choice(["skip", "error"])
    if rng.random() < 0.3:
        # Of what is not finite the reference in f64 knows what arrives so, and not
        # what becomes so in a narrow accumulator.
        step.nonfinite = "skip"
        step.accumulator = rng.choice(["f32", "f64"])
        rule = rng.choice(["torch", "deepspeed", "static"])
        step.loss_scale = ROOT / f"examples/loss_scales/{rule}.mlir"
    if rng.random() < 0.3:
        rule = rng.choice(["constant", "linear", "cosine", "wsd"])
        step.schedule = [ROOT / f"examples/schedules/{rule}.mlir"]
    # An f16 may overflow where the sum in f64 does not.
    narrower = {"f32": ["bf16"], "f64": ["bf16", "f32"]}
    if step.accumulator in narrower and rng.random() < 0.4:
        step.reduce_dtype = rng.choice(narrower[step.accumulator])
    over = []
    if rng.random() < 0.6:
        mesh = draw_mesh(rng)
        step.mesh = ",".join(f"{axis}={size}" for axis, size in mesh.items())
        tied = [str(i) for i in range(parameters) if rng.random() < 0.3]
        step.tied = ",".join(tied)
        kinds = rng.sample(list(make_step.CLASSES), rng.choice([1, 2, 3, 9]))
        if "expert_alone" in kinds:
            # Not beside parameters that ep shards, and not in units.
            kinds = [kind for kind in kinds if "ep" not in make_step.CLASSES[kind].sharded]
        step.classes = ",".join(kinds)
        owners = [axis for axis in mesh if axis != "pp"]
        if owners and rng.random() < 0.4:
            over = rng.sample(owners, rng.randint(1, len(owners)))
    lowering = [
        f"--stage={rng.choice([0, 1, 2])}",
        f"--offload={rng.choice(['none', 'optimizer'])}",
        f"--bucket-bytes={rng.choice(['16', '1KiB', '25MiB'])}",
        f"--shard-over={','.join(over)}",
    ]
    step.one_backward = rng.random() < 0.2
    backwards = rng.choice(["1", "2", "3", "1,4,2", "2,1"])
    running = [
        f"--accumulation={'1' if step.one_backward else backwards}",
        f"--seed={rng.randrange(1, 1000)}",
        "--steps=3",
    ]
    phase = rng.choice(["sharded", "placed", "scheduled"])
    running.append(f"--measure={rng.choice(['true', 'false'])}")
    running.append(f"--absent={rng.choice(['true', 'false'])}")
    alone = "ep=" in step.mesh and "expert_alone" in step.classes
    if rng.random() < 0.3 and not alone:
        step.units = draw_units(rng, parameters)
        if step.units:
            stage = rng.choice([2, 3, 3, 3])
            lowering[0] = f"--stage={stage}"
            if stage == 3 and rng.random() < 0.4:
                lowering.append("--reduce=apply")
            if stage == 3 and rng.random() < 0.3:
                lowering.append("--unit-order=declared")
                if rng.random() < 0.5:
                    lowering.append(f"--prefetch-units={rng.choice([0, 2, 3])}")
            if stage == 3 and rng.random() < 0.3:
                lowering[1] = "--offload=parameters"
            step.unit_orders = rng.choice([0, 0, 1, 2, 3])
            step.frozen = rng.choice([0, 0, 1, 3])
            # Some frozen parameters are bf16, which has not all numbers of f16.
            if dtype == "f32" and rng.random() < 0.5:
                step.gather_dtype = "bf16" if step.frozen else rng.choice(["bf16", "f16"])
    if (lowering[0] == "--stage=1" or "--reduce=apply" in lowering) and rng.random() < 0.7:
        lowering.append("--accumulate=apart")
        if rng.random() < 0.7 and step.accumulator in narrower:
            step.gradient, step.used_twice, step.used_any = "bf16", "", ""
    return step, lowering, running, phase


NOTHING_TO_KEEP = "has no slices of parameters to keep on the host"
NOT_APART = "leave 'accumulate=apart' out"


def simpler(drawn):
    """Draws that are simpler than |drawn| in one thing."""
    step, lowering, running, phase = drawn
    sizes = step.sizes.split(",")
    fewer = [sizes[: len(sizes) // 2], sizes[len(sizes) // 2 :], sizes[:-1], sizes[1:]]
    for left in fewer:
        if 0 < len(left) < len(sizes):
            units = [[i for i in unit if i < len(left)] for unit in step.units]
            units = [unit for unit in units if unit]
            yield change(step, parameters=len(left), sizes=",".join(left), units=units), *drawn[1:]
    for i, unit in enumerate(step.units):
        without = step.units[:i] + step.units[i + 1 :]
        yield change(step, units=without), *drawn[1:]
        if len(unit) > 1:
            yield change(step, units=[*without, unit[1:]]), *drawn[1:]
    for i, size in enumerate(sizes):
        smaller = str(int(size) // 2)
        if smaller != size:
            halved = ",".join([*sizes[:i], smaller, *sizes[i + 1 :]])
            yield change(step, sizes=halved), *drawn[1:]
    plain = {
        "frozen": 0, "unit_orders": 0, "gather_dtype": "",
        "ranks": step.ranks // 2 or 1, "dtype": "f32", "gradient": "f32",
        "accumulator": "f32", "reduce_dtype": "", "normalize": "mean", "optional": "", "used_twice": "", "used_any": "",
        "nonfinite": "skip", "max_norm": 0, "groups": 1, "norm": "all", "absent": "zero",
        "optimizer": step.optimizer[:1], "loss_scale": "", "schedule": [], "tied": "",
        "one_backward": False,
    }  # fmt: skip
    for key, value in plain.items():
        if getattr(step, key) != value:
            yield change(step, **{key: value}), *drawn[1:]
    kinds = step.classes.split(",")
    for i in range(len(kinds) if len(kinds) > 1 else 0):
        yield change(step, classes=",".join(kinds[:i] + kinds[i + 1 :])), *drawn[1:]
    if step.mesh:
        yield change(step, mesh="", classes="dense"), lowering[:3], running, phase
        mesh = make_step.read_mesh(step)
        for axis, size in mesh.items():
            if size > 1:
                smaller = {**mesh, axis: size // 2}
                text = ",".join(f"{a}={s}" for a, s in smaller.items())
                yield change(step, mesh=text), *drawn[1:]
    flags = ["--stage=0", "--offload=none", "--bucket-bytes=25MiB", "--shard-over="]
    for i, flag in enumerate(flags[: len(lowering)]):
        if lowering[i] != flag:
            yield step, [*lowering[:i], flag, *lowering[i + 1 :]], running, phase
    for i, flag in [(0, "--accumulation=1"), (2, "--steps=1"), (3, "--measure=false"), (4, "--absent=false")]:
        if running[i] != flag:
            yield step, lowering, [*running[:i], flag, *running[i + 1 :]], phase


def change(step, **values):
    return argparse.Namespace(**{**vars(step), **values})


def check(binaries, file, drawn, compiled):
    """Writes the step to |file|; the first command that fails, and how; or nothing."""
    step, lowering, running, phase = drawn
    with open(file, "w") as out:
        make_step.write_step(step, out)
    if compiled:
        # A unit is resharded in the backward pass that is open.
        arrivals = "shuffled" if "--stage=3" in lowering else "interleaved"
        way = ["--engine=compiled", f"--arrivals={arrivals}"]
    else:
        way = ["--engine=interpreter", f"--until={phase}"]
        if phase == "scheduled":
            way.append(f"--orders={ORDERS}")
    commands = [
        [binaries / "zero-prove", file, *lowering],
        [binaries / "zero-run", file, *lowering, *running, *way, "--against=logical"],
    ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            text = (done.stderr or done.stdout).strip().splitlines()
            if text and NOTHING_TO_KEEP in text[0]:
                # As where experts divide all parameters of units already.
                lowering = [flag.replace("=parameters", "=optimizer") for flag in lowering]
                return check(binaries, file, (step, lowering, running, phase), compiled)
            if text and NOT_APART in "".join(text):
                lowering = [flag for flag in lowering if flag != "--accumulate=apart"]
                return check(binaries, file, (step, lowering, running, phase), compiled)
            return command, text[0] if text else f"exit code {done.returncode}"
    return None


def kind(wrong):
    """Which tool said what, but for places and names."""
    command, message = wrong
    return command[0], message.split("error: ")[-1][:24]


def shrink(binaries, folder, drawn, compiled, wrong):
    """The smallest draw found that fails in the same way, and how it does."""
    file = folder / "smaller.mlir"
    found_one = True
    while found_one:
        found_one = False
        for smaller in simpler(drawn):
            found = check(binaries, file, smaller, compiled)
            if found and kind(found) == kind(wrong):
                drawn, wrong, found_one = smaller, found, True
                break
    return drawn, wrong


def run_one(binaries, folder, seed, number):
    """What went wrong with step |number|, or nothing; and the phase at which it ran."""
    drawn = draw(random.Random(f"{seed}/{number}"))
    compiled = number % 10 == 0
    file = folder / "step.mlir"
    wrong = check(binaries, file, drawn, compiled)
    if not wrong:
        return "", "compiled" if compiled else drawn[-1]
    drawn, (command, message) = shrink(binaries, folder, drawn, compiled, wrong)
    keep = pathlib.Path(f"generated-{number}.mlir")
    with open(keep, "w") as out:
        make_step.write_step(drawn[0], out)
    shown = " ".join(map(str, [command[0], keep, *command[2:]]))
    return f"{shown}\n  {message}", ""


def run_batch(options, first, end):
    with tempfile.TemporaryDirectory() as folder:
        return [
            run_one(options.bin, pathlib.Path(folder), options.seed, number)
            for number in range(first, end)
        ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--progress", type=pathlib.Path, help="file of finished steps, to continue")
    options = parser.parse_args()

    done = {}
    if options.progress and options.progress.exists():
        for line in options.progress.read_text().splitlines():
            record = json.loads(line)
            if record["seed"] == options.seed:
                done[record["first"], record["end"]] = record
    batches = [
        (first, min(first + BATCH, options.count))
        for first in range(0, options.count, BATCH)
    ]
    records = [done[batch] for batch in batches if batch in done]
    left = [batch for batch in batches if batch not in done]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(run_batch, options, *batch): batch for batch in left}
        for number, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            first, end = jobs[job]
            results = job.result()
            record = {
                "seed": options.seed,
                "first": first,
                "end": end,
                "compiled": sum(phase == "compiled" for _, phase in results),
                "orders": sum(ORDERS for _, phase in results if phase == "scheduled"),
                "wrong": [wrong for wrong, _ in results if wrong],
            }
            records.append(record)
            if options.progress:
                with open(options.progress, "a") as out:
                    out.write(json.dumps(record) + "\n")
            print(f"{number} of {len(left)} batches", file=sys.stderr, flush=True)

    wrong = [line for record in records for line in record["wrong"]]
    steps = sum(record["end"] - record["first"] for record in records)
    compiled = sum(record["compiled"] for record in records)
    orders = sum(record["orders"] for record in records)
    for line in wrong:
        print(line)
    print(
        f"{steps} steps proved after every pass and run, {compiled} of them compiled, "
        f"{orders} orders of streams, seed {options.seed}: {len(wrong)} disagreements"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
