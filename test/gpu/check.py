#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the steps that gpu-check.sh has compiled on the GPU of this machine.

Each program is a separate process with a time limit, so a crash or a hang costs only
its own row. Rows are printed at once. The pieces run in this order, each in at most
three minutes, all within ten:

  machine     the driver, a GPU and NCCL, with all functions that are called
  loaders     one step as machine code, then as PTX
  libraries   every step against the processor, bit by bit
  table       times against copies and PyTorch
  nccl        one rank, two processes, and two processes of which one is killed
  streams     gradients from a stream of the caller
  sanitizers  a few steps under memcheck and initcheck of compute-sanitizer
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import re
import shutil
import socket
import sys
import time
from dataclasses import dataclass
from typing import Callable, Sequence

from processes import Ended, Task, end_with_this_process, run, run_all

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
AT_ONCE = 4
# Those that take longest.
LARGE = ("ranks35", "large", "norm_bf16", "norm_f16", "norm_f64")
MACHINE_CODE, PTX = "adamw_bf16_bf16_f32", "adamw_ptx"
ON_PROCESSES = ("ranks2_stage1", "ranks2_stage2", "ranks2_stage3", "reduce_dtype")
SANITIZED = ("adamw_bf16_bf16_f32", "ranks2_stage1_offload", "ranks4_stage2",
             "ranks2_stage3_parameters")
# racecheck and synccheck look at shared memory and barriers, of which there are none.
SANITIZERS = {
    "memcheck": (["--track-stream-ordered-races", "all"], []),
    "initcheck": ([], ["--no-poison"]),
}


def say(text: str) -> None:
    print(text, flush=True)


class Check:
    """The options, and what has failed."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.folder: pathlib.Path = options.folder
        self.device: str = options.device
        self.gpus: str = options.gpus
        self.limit: float = options.limit
        self.only: list[str] = options.only
        self.deadline = 0.0  # of the piece
        self.failures: list[str] = []
        self.skipped: list[str] = []

    def fail(self, name: str) -> None:
        self.failures.append(name)

    def skip(self, name: str, why: str) -> None:
        say(f"{name:24} skipped: {why}")
        self.skipped.append(name)

    def is_there(self, name: str) -> bool:
        if self.find_library(name).exists():
            return True
        self.skip(name, f"there is no {self.find_library(name).name} in {self.folder}")
        return False

    def find_library(self, name: str) -> pathlib.Path:
        return self.folder / name / f"lib{name}.so"

    def make_task(self, name: str, *options: str, title: str = "",
                  environment: dict[str, str] | None = None,
                  before: Sequence[str] = ()) -> Task:
        """gpu_check of one library."""
        command = [*before, str(self.folder / "gpu_check"), f"--device={self.device}",
                   f"--gpus={self.gpus}", *options, str(self.find_library(name))]
        return Task(title or name, command, self.limit, environment or {})

    def report(self, ended: Ended, last: int = 1) -> None:
        """Its |last| lines, and more where it failed."""
        name, lines = ended.task.name, ended.output.rstrip().splitlines()
        why = ended.describe_failure()
        if why:
            say(f"{name:24} {why}")
        if not lines and not why and not ended.task.prints:
            say(f"{name:24} status {ended.status}, and no output")
        if ended.status == 0:
            lines = lines[-last:]
        for line in lines[-20:]:
            say(f"    {line}" if why else line)
        if ended.status == SKIPPED:
            self.skipped.append(name)
        elif ended.status != 0:
            self.fail(name)


# ---------------------------------------------------------------------------------------
# Libraries
# ---------------------------------------------------------------------------------------

def print_header() -> None:
    say(f"{'step':24} {'code':6} {'ranks':>5} {'pieces':>6} {'differences':>11} "
        f"{'as graphs':>9}")


def check_machine(check: Check) -> None:
    if check.device == "host":
        check.skip("machine", "the processor takes the place of the GPU")
        return
    task = Task("machine", [str(check.folder / "gpu_machine"),
                            f"--gpu={check.gpus.split(',')[0]}"], check.limit,
                find_nccl())
    check.report(run(task, check.deadline), last=20)


def check_loaders(check: Check) -> None:
    print_header()
    for name in (MACHINE_CODE, PTX):
        if not check.is_there(name):
            continue
        ended = run(check.make_task(name), check.deadline)
        check.report(ended)
        is_ptx = re.search(rf"^{name} +PTX ", ended.output, re.MULTILINE)
        if ended.status == 0 and bool(is_ptx) != (name == PTX):
            check.skip(f"{name}, loader", "it has machine code" if name == PTX else
                       "it has no machine code for this GPU; see gpu-check.sh --arch")


def check_libraries(check: Check) -> None:
    print_header()
    names = sorted((path.parent.name for path in check.folder.glob("*/lib*.so")),
                   key=lambda name: (name in LARGE, name))
    if check.only:
        names = [name for name in names if name in check.only]
    tasks = [check.make_task(name) for name in names]
    for ended in run_all(tasks, AT_ONCE, check.deadline):
        check.report(ended)
    say(f"{len(names)} steps")
    if not names:
        check.fail("libraries")


def run_script(check: Check, name: str, script: str, *options: str) -> None:
    """One of the scripts beside this, which prints its own rows."""
    command = [sys.executable, str(HERE / script), f"--device={check.device}",
               f"--gpu={check.gpus.split(',')[0]}", *options, str(check.folder)]
    left = check.deadline - time.monotonic()
    check.report(run(Task(name, command, left, prints=True), check.deadline))


def check_table(check: Check) -> None:
    run_script(check, "table", "peers.py")


def check_streams(check: Check) -> None:
    run_script(check, "streams", "side_stream.py")


# ---------------------------------------------------------------------------------------
# NCCL
# ---------------------------------------------------------------------------------------

def find_nccl() -> dict[str, str]:
    """The environment in which the NCCL of a Python package is found, if there is
    one."""
    spec = importlib.util.find_spec("nvidia")
    folders = [os.path.join(place, "nccl", "lib")
               for place in (spec.submodule_search_locations or [] if spec else [])]
    folders = [each for each in folders if os.path.isdir(each)]
    if not folders:
        return {}
    folders += [each for each in [os.environ.get("LD_LIBRARY_PATH")] if each]
    return {"LD_LIBRARY_PATH": os.pathsep.join(folders)}


def find_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def run_processes(check: Check, name: str, *last: str) -> list[Ended]:
    """Two ranks, of which the second one gets the options |last|."""
    port = str(find_port())
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "ZERO_RT_PORT": port,
              "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_NET": "Socket",
              "NCCL_DEBUG": "WARN", **find_nccl()}
    tasks = []
    for rank in range(2):
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        # NCCL refuses two ranks of one machine on one GPU, so these pose as two.
        if len(set(check.gpus.split(","))) == 1:
            own["NCCL_HOSTID"] = f"zero-opt-{rank}"
        tasks.append(check.make_task(name, "--process", *(last if rank else ()),
                                     title=f"{name}, rank {rank}",
                                     environment={**shared, **own}))
    return sorted(run_all(tasks, 2, check.deadline), key=lambda ended: ended.task.name)


def check_nccl(check: Check) -> None:
    if check.device == "cuda":
        ended = run(Task("nccl", [str(check.folder / "gpu_machine"), "--nccl",
                                  f"--gpu={check.gpus.split(',')[0]}"],
                         check.limit, find_nccl()), check.deadline)
        check.report(ended, last=20)
        if ended.status == SKIPPED:
            return
    say("two processes:")
    print_header()
    for name in ON_PROCESSES:
        if check.is_there(name):
            for ended in run_processes(check, name):
                check.report(ended)
    name = ON_PROCESSES[0]
    if not check.is_there(name):
        return
    say("two processes, of which one is killed:")
    left, killed = run_processes(check, name, "--die=2")
    lines = left.output.rstrip().splitlines()
    if killed.status != -9 or left.status != 1 or not lines:
        say(f"{name:24} expected an error of rank 0, and rank 1 to be killed")
        check.report(killed)
        check.report(left)
        check.fail(f"{name}, one killed")
        return
    say(f"{lines[-1]} (after {left.seconds:.1f} s)")


# ---------------------------------------------------------------------------------------
# compute-sanitizer
# ---------------------------------------------------------------------------------------

def find_sanitizer() -> str | None:
    home = pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")
    name = "compute-sanitizer"
    return (shutil.which(name) or shutil.which(str(home / "bin" / name)) or
            shutil.which(str(home / name / name)))


def report_sanitizer(check: Check, ended: Ended) -> None:
    """What it found; where it did not come to say, it refuses to run here."""
    summary = re.search(r"ERROR SUMMARY: (\d+) error", ended.output)
    lines = [line for line in ended.output.splitlines() if line.startswith("=====")]
    if summary is None and ended.status is not None:
        said = [line.lstrip("= ") for line in lines if "rror" in line]
        said = said or [line.lstrip("= ") for line in ended.output.splitlines()[-1:]]
        check.skip(ended.task.name, said[0] if said else f"status {ended.status}")
    elif summary is not None and summary[1] != "0":
        say(f"{ended.task.name:24} {summary[1]} errors")
        for line in lines[:20]:
            say(f"    {line}")
        check.fail(ended.task.name)
    elif ended.status == 0:
        say(f"{ended.task.name:36} 0 errors after {ended.seconds:.1f} s")
    else:
        check.report(ended)


def check_sanitizers(check: Check) -> None:
    sanitizer = find_sanitizer()
    if sanitizer is None:
        check.skip("sanitizers", "there is no compute-sanitizer on the PATH or in "
                   "$CUDA_HOME")
        return
    tasks = []
    for tool, (options, ours) in SANITIZERS.items():
        for name in SANITIZED:
            if check.is_there(name):
                before = [sanitizer, "--tool", tool, "--error-exitcode", "99", *options]
                tasks.append(check.make_task(name, *ours, title=f"{tool} {name}",
                                             before=before))
    for ended in run_all(tasks, 2, check.deadline):
        report_sanitizer(check, ended)


# ---------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Piece:
    seconds: float
    run: Callable[[Check], None]


PIECES = {
    "machine": Piece(30, check_machine),
    "loaders": Piece(45, check_loaders),
    "libraries": Piece(150, check_libraries),
    "table": Piece(120, check_table),
    "nccl": Piece(75, check_nccl),
    "streams": Piece(45, check_streams),
    "sanitizers": Piece(120, check_sanitizers),
}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "host"], default="cuda",
                        help="host: the processor takes the place of the GPU")
    parser.add_argument("--gpus", default="0", metavar="N,...",
                        help="GPUs that ranks take in turn (default 0); the first is timed")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[],
                        metavar="NAME,...", help="run only these steps of 'libraries'")
    parser.add_argument("--limit", type=float, default=60, metavar="SECONDS",
                        help="time limit of one program (default 60)")
    parser.add_argument("--seconds", type=float,
                        help="time limit of one piece, instead of the piece's own")
    parser.add_argument("--folder", type=pathlib.Path, default=HERE,
                        help="folder that gpu-check.sh made (default: folder of check.py)")
    parser.add_argument("pieces", nargs="*", metavar="PIECE",
                        help=f"one of {', '.join(PIECES)} (default: all)")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    if not re.fullmatch(r"\d{1,3}(,\d{1,3})*", options.gpus):
        parser.error(f"--gpus must be numbers such as 0,1, got '{options.gpus}'")
    for piece in options.pieces:
        if piece not in PIECES:
            parser.error(f"'{piece}' is no piece; expected one of {', '.join(PIECES)}")
    return options


def main() -> int:
    options = parse()
    end_with_this_process()
    check = Check(options)
    for name in options.pieces or PIECES:
        piece = PIECES[name]
        seconds = options.seconds or piece.seconds
        say(f"== {name} (at most {seconds:.0f} s)")
        begin = time.monotonic()
        check.deadline = begin + seconds
        piece.run(check)
        say(f"   {time.monotonic() - begin:.1f} s")
    say(f"{len(check.failures)} failures, {len(check.skipped)} skipped")
    for failure in check.failures:
        say(f"  failed: {failure}")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
