#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Breaks each pass on purpose, rebuilds it, and checks that somebody notices.

  broken_passes.py --build /tmp/broken [--only collective] [--list]

The script works on a copy of the sources, in a separate build folder. A break is caught
if some step is rejected after the broken pass: by a verifier, by a later pass, or by
zero-prove. Schedule and proof read the same effects of calls, so an effect that is left
out must be found by the interpreter, which sees what a call touches. Code generation comes
after the proof, so zero-compile must find that the library is not the program. A break
takes about half a minute, so the script is not part of the tests.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from breaks import BREAKS

ROOT = pathlib.Path(__file__).resolve().parents[2]

STEPS = [
    "--mesh pp=3,dp=2 --parameters 5 --optimizer sgd --sizes 70,33 --tied 1 --activations",
    "--mesh edp=2,ep=2,tp=2 --classes dense,column,expert_tp,sequence --parameters 5 "
    "--optimizer adamw --sizes 70,33",
    "--ranks 2 --parameters 5 --optimizer adamw --sizes 70,1,33 --optional 1",
    "--ranks 2 --parameters 5 --optimizer adam --sizes 70,1,33 --groups 3 --optional 0,1,3,4 "
    "--absent skip --max-norm input",
    "--ranks 3 --parameters 3 --optimizer adam --sizes 7,70 --nonfinite error",
    "--ranks 2 --parameters 3 --optimizer adamw --sizes 70,3 --one-backward",
    # Pieces of gradients that are narrower than their sums.
    "--ranks 2 --parameters 4 --optimizer adamw --sizes 70,3 --one-backward --gradient f16 "
    "--used-twice 1",
    "--ranks 2 --parameters 6 --optimizer sgd --sizes 70,3 --used-any 1 --used-twice 0,4 "
    "--gradient bf16 --reduce-dtype bf16",
    "--ranks 2 --parameters 3 --optimizer sgd --sizes 70,3 --one-backward --gradient f32 "
    "--reduce-dtype bf16",
    # Its scalar programs are one, which loads what it stored.
    "--ranks 1 --parameters 2 --optimizer adam --sizes 7,70",
    "--ranks 2 --parameters 4 --optimizer lion --normalize raw --sizes 70,3 --reduce-dtype bf16",
    # Callers divide by ranks.
    "--ranks 3 --parameters 2 --optimizer sgd --normalize averaged --sizes 7,70",
    "--mesh dp=2,tp=2 --parameters 2 --optimizer sgd --normalize tokens --sizes 70,2 "
    f"--loss-scale {ROOT}/examples/loss_scales/torch.mlir "
    f"--schedule {ROOT}/examples/schedules/linear.mlir",
    "--ranks 2 --parameters 5 --optimizer adamw --sizes 70,1,33 --units 2 --frozen 2 "
    "--unit-orders 2",
    "--mesh edp=2,ep=2 --classes dense,expert --parameters 4 --optimizer sgd --sizes 70,32 "
    "--units 4 --frozen 1 --dtype f32 --gather-dtype bf16",
    "--mesh pp=2,dp=2 --parameters 6 --optimizer sgd --sizes 70,32 --units 6 --frozen 1 --tied 1",
    # Gradients that may stay as they arrive.
    "--ranks 2 --parameters 5 --optimizer adamw --sizes 70,1,33 --optional 1 --gradient bf16",
]
# Buckets of one parameter and of several.
LOWERINGS = [
    "--stage=0 --bucket-bytes=25MiB",
    "--stage=1 --bucket-bytes=16 --offload=optimizer",
    "--stage=2 --bucket-bytes=16",
    "--stage=2 --bucket-bytes=25MiB --offload=optimizer",
]
LOWERINGS_OF_UNITS = [
    "--stage=3 --bucket-bytes=16",
    "--stage=3 --bucket-bytes=25MiB --offload=parameters --keep-after-forward=last",
    "--stage=3 --bucket-bytes=16 --reduce=apply",
]
LOWERINGS_OF_NARROW = ["--stage=1 --bucket-bytes=16 --accumulate=apart"]


def find_rejection(tool, folder):
    """What rejects the broken compiler's work, or nothing."""
    for number, step in enumerate(STEPS):
        arguments = step.split()
        name = arguments[arguments.index("--optimizer") + 1]
        arguments[arguments.index("--optimizer") + 1] = str(
            ROOT / f"examples/optimizers/{name}.mlir"
        )
        file = folder / f"{number}.mlir"
        with open(file, "w") as out:
            subprocess.run(
                [sys.executable, ROOT / "tools/scripts/make_step.py", *arguments],
                stdout=out, check=True,
            )  # fmt: skip
        lowerings = LOWERINGS_OF_UNITS if "--units" in arguments else LOWERINGS
        if step == STEPS[-1]:
            lowerings = LOWERINGS_OF_NARROW
        for lowering in lowerings:
            options = [*tool, *lowering.split()]
            if "--one-backward" in arguments:
                options = [text.replace("--accumulation=1,2", "--accumulation=1")
                           if isinstance(text, str) else text for text in options]
            done = subprocess.run([*options, file], capture_output=True, text=True)
            if done.returncode != 0:
                errors = [line for line in done.stderr.splitlines() if "error:" in line]
                return errors[0].split("error: ", 1)[-1] if errors else "a crash"
    return ""


def pattern_of(text):
    """Matches |text| however it is broken into lines."""
    tokens = re.findall(r"\w+|[^\w\s]", text)
    return re.compile(r"\s*".join(map(re.escape, tokens)))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=pathlib.Path, help="folder for the copy")
    parser.add_argument("--only", help="breaks of this pass, or breaks that match")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    breaks = [
        entry
        for entry in BREAKS
        if not options.only
        or options.only == entry[0]
        or re.search(options.only, entry[1])
    ]
    for _, _, path, text, _ in BREAKS:
        if not pattern_of(text).search((ROOT / path).read_text()):
            sys.exit(f"{path} has changed: no '{text}'")
    if options.list:
        for name, what, *_ in breaks:
            print(f"{name:11} {what}")
        return
    if not options.build:
        parser.error("--build names a folder for the copy")

    source = options.build.resolve() / "source"
    build = options.build.resolve() / "build"
    if source.exists():
        shutil.rmtree(source)
    # With new times: what the last break left in the build folder is older.
    ignored = shutil.ignore_patterns(".git", "build", "build-*")
    shutil.copytree(ROOT, source, ignore=ignored, copy_function=shutil.copyfile)
    compile_step = ["bash", "tools/scripts/build.sh", build, "-DCMAKE_UNITY_BUILD=OFF", "--", "zero-prove", "zero-run", "zero-compile"]
    subprocess.run(compile_step, check=True, capture_output=True, cwd=source)
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        prove = [build / "bin/zero-prove"]
        interpret = [
            build / "bin/zero-run", "--engine=interpreter", "--until=scheduled",
            "--accumulation=1,2", "--hints=random", "--steps=4",
        ]  # fmt: skip
        validate = [build / "bin/zero-compile", "--no-prove", "-o", folder / "out"]
        tools = {"effects": interpret, "library": validate}
        for tool in (prove, *tools.values()):
            if rejection := find_rejection(tool, folder):
                sys.exit(f"unbroken passes are rejected: {rejection}")
        for name, what, path, text, other in breaks:
            file = source / path
            right = file.read_text()
            file.write_text(pattern_of(text).sub(lambda _: other.strip(), right, count=1))
            done = subprocess.run(
                compile_step, capture_output=True, text=True, cwd=source
            )
            file.write_text(right)
            if done.returncode != 0:
                errors = [line for line in done.stdout.splitlines() if "error:" in line]
                print(f"{name:11} {what}: DOES NOT COMPILE {errors[:3]}", flush=True)
                missed += 1
                continue
            rejection = find_rejection(tools.get(name, prove), folder)
            missed += not rejection
            print(f"{name:11} {what}: {rejection[:150] or 'MISSED'}", flush=True)
    print(f"{len(breaks) - missed} of {len(breaks)} broken passes caught")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
