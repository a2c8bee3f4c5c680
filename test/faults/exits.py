#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that end with live objects of the runtime: exits.py PROGRAM LIBRARY.

The program is that of exits.c. The process of rank 1 must end with its own code, print
nothing and not hang. Rank 0, if it is another process, must learn of it, print one
line, and end as well. Ranks are threads, or processes over TCP with and without shared
memory.
"""

import argparse
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "exec/Inputs"))
from free_port import free_port  # noqa: E402

MOMENTS = ["idle", "unsharded", "backward", "saving", "waiting"]
LIMIT_S = 60


def start(command, transport, rank, job):
    environment = dict(os.environ)
    # What lives at the end is no leak.
    sanitizer = environment.get("ASAN_OPTIONS", "")
    environment["ASAN_OPTIONS"] = f"{sanitizer}:detect_leaks=0".lstrip(":")
    if transport != "threads":
        environment |= job
        environment |= {"RANK": str(rank), "WORLD_SIZE": "2"}
        environment["ZERO_RT_SHARED_MEMORY"] = "0" if transport == "tcp" else "1"
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def end_of(process):
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"has not ended after {LIMIT_S} s"
    return process.returncode, out, err


def run_once(options, transport, moment, how):
    """What is wrong with the ends of the processes."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        command = [options.program, options.library, moment, how, f"{folder}/saved"]
        job = {
            "ZERO_RT_PORT": str(free_port()),
            "ZERO_RT_SECRET": secrets.token_hex(16),
        }
        ranks = [1] if transport == "threads" else [0, 1]
        processes = [start(command, transport, rank, job) for rank in ranks]
        for rank, process in zip(ranks, processes):
            end = end_of(process)
            is_right = end == (3, "", "")
            if rank == 0:
                is_right = (
                    end[0] == 4
                    and end[1].startswith("rank 0: ")
                    and "rank 1" in end[1]
                    and end[1].count("\n") == 1
                    and not end[2]
                )
            if not is_right:
                wrong.append(f"{transport} {moment} {how}: rank {rank}: {end}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=1, help="runs of each kind")
    options = parser.parse_args()
    runs, wrong = 0, []
    for _ in range(options.count):
        for transport in ["threads", "tcp", "shared"]:
            for moment in MOMENTS:
                for how in ["exit", "return"]:
                    runs += 1
                    wrong += run_once(options, transport, moment, how)
    print("\n".join([*wrong, f"{runs} runs, {len(wrong)} wrong ends"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
