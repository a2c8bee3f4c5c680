#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kills a training and resumes it, on as many ranks and on another number.

usage: resume.py FOLDER [ZERO_COMPILE_OPTION...]

char_model and zero-compile are those in PATH. FOLDER has model.json and gets the rest. The
training is killed with SIGKILL at some moment behind its first checkpoint. The losses behind
the checkpoint are those of a training that was not killed: bit by bit on as many ranks, and
within 2e-4 on another number of ranks with the same batch.
"""

import json
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
STEPS = 40
MODEL = ["--width=16", "--context=16", "--heads=2", "--layers=2"]


def train(folder: pathlib.Path, ranks: int, *options: str) -> list[str]:
    return [
        "char_model",
        *(f"--library={folder}/dp{ranks}/libtrain.so", f"--mesh=dp={ranks}"),
        *("--imported", "--precision=f32", "--batch=1", "--threads=1"),
        *(f"--accumulation={8 // ranks}", f"--save={folder}/checkpoint", "--save-every=3"),
        *MODEL,
        *options,
    ]


def get_losses(command: list[str], path: pathlib.Path) -> list[float]:
    run = subprocess.run([*command, f"--losses={path}"], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(command)}: exit code {run.returncode}\n{run.stdout}{run.stderr}")
    return [float(line) for line in path.read_text().splitlines()]


def kill(command: list[str], index: pathlib.Path) -> int:
    """Kills |command| behind its first checkpoint; the number of the last one."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not index.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit("there is no checkpoint to kill behind")
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    return int(json.loads(index.read_text())["number"])


def main(folder: pathlib.Path, options: list[str]) -> None:
    index = folder / "checkpoint/checkpoint.json"
    for ranks in (4, 2):
        subprocess.run(
            [
                "zero-compile",
                f"--import-deepspeed={ROOT}/examples/transformer/ds_config.json",
                *(f"--model={folder}/model.json", "--no-decay=1d", f"--mesh=dp={ranks}"),
                *(f"-o={folder}/dp{ranks}", *options),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    # Far more steps than it takes to kill it. The schedule is that of the configuration.
    number = kill(train(folder, 4, "--steps=1000000"), index)
    if not 0 < number < STEPS:
        sys.exit(f"killed behind step {number}")
    (folder / "checkpoint").rename(folder / "killed")
    whole = get_losses(train(folder, 4, f"--steps={STEPS}"), folder / "whole.txt")
    for ranks in (4, 2):
        subprocess.run(["rm", "-rf", folder / "checkpoint"], check=True)
        subprocess.run(["cp", "-r", folder / "killed", folder / "checkpoint"], check=True)
        command = train(folder, ranks, f"--steps={STEPS}", "--resume")
        losses = get_losses(command, folder / "resumed.txt")
        assert len(losses) == STEPS - number, (len(losses), number)
        apart = max(abs(a - b) for a, b in zip(losses, whole[number:], strict=True))
        if apart > (0 if ranks == 4 else 2e-4):
            sys.exit(f"{ranks} ranks, resumed behind step {number}: losses differ by {apart}")
        print(f"{ranks} ranks: losses differ by at most {apart:.1e}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
