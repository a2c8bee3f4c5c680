#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports configurations with the shapes of those of public projects, for a small GPT-2.
Each step is proved, runs compiled and interpreted on two ranks with the stage and the
offload of the configuration, and the results are equal.

usage: public_configs.py BIN [--break] [--import]

--break runs them at stage 4, which is refused. --import only imports them. They are written anew: what counts are the
keys that a project has, and their values."""

import json
import pathlib
import subprocess
import sys
import tempfile

from config_parts import zero
from configs_of_engines import ENGINES
from configs_of_stage3 import STAGE3
from configs_of_trainers import TRAINERS

MODEL = {
    "model_type": "gpt2",
    "n_embd": 8,
    "n_inner": 12,
    "n_layer": 2,
    "n_positions": 5,
    "vocab_size": 17,
}

PROJECTS = TRAINERS + ENGINES + STAGE3


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(folder, tools, config, flags, is_run):
    (folder / "ds.json").write_text(json.dumps(config))
    (folder / "model.json").write_text(json.dumps(MODEL))
    importing = ["--import-deepspeed=ds.json", "--model=model.json", "--mesh=dp=2"]
    text = run(
        folder,
        f"{tools}/zero-translate",
        *importing,
        *flags,
        "--json",
        "-o",
        "step.mlir",
    )
    result = json.loads(text)
    options = result["options"]
    lower = [f"--{name}={options[name]}" for name in options if name != "mesh"]
    is_one = " one_backward (" in (folder / "step.mlir").read_text()
    if is_one != (result.get("accumulation") == 1):
        raise RuntimeError("one_backward is not what the configuration says")
    passes = min(result.get("accumulation", 2), 4)
    summary = f"{' '.join(lower)}, {passes} backward passes"
    if not is_run:
        return summary
    run(folder, f"{tools}/zero-prove", "step.mlir", *lower)
    ran = run(
        folder,
        f"{tools}/zero-run",
        "step.mlir",
        *lower,
        "--steps=4",
        f"--accumulation={passes}",
        "--against=typed",
        "--json",
    )
    if not json.loads(ran)["equal"]:
        raise RuntimeError("the results differ from the interpreter's")
    return summary


def main(tools, *more):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for source, config, flags in PROJECTS:
            if "--break" in more:
                config = config | zero(4)
            try:
                done = check(pathlib.Path(folder), tools, config, flags, "--import" not in more)
                print(f"{source}: {done}")
            except RuntimeError as error:
                wrong += 1
                print(f"{source}: {error}")
    print(f"{len(PROJECTS)} configurations, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
