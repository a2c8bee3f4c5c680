#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled steps over each kind of process group: the bits are those of threads.

  shared  ranks exchange data as processes of one machine, in shared memory
  tcp     ranks exchange data as processes of several machines
  mpi     ranks are processes that mpiexec has started; left out without MPI
  nccl    each rank has a GPU, and GPUs exchange data over NCCL: a fake of both

The steps are rows of equality.py and meshes of topology.py, drawn from the seed.
Gradients are random numbers, so another order of additions shows. NCCL has an order of
its own for more than two addends, so gradients are then integers, whose sums are exact.
For each step and kind the hash of parameters and state, what each step reported, and
the counters of each rank equal those of threads.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import equality
import topology
from claims import Claims

# More processes than cores, in a container.
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
LIMIT = 120  # seconds for a run, which takes less than two


def draw_equality(rng, runner, count):
    """Steps and flags of rows of equality.py with several ranks."""
    rows = [row for row in equality.covering(rng) if row["ranks"] > 1]
    for row in rng.sample(rows, count) if count else rows:
        lowering = [
            f"--stage={row['stage']}", f"--offload={equality.offload_of(row)}",
            f"--reduce={equality.reduce_of(row)}", *equality.unit_order_of(row),
            f"--bucket-bytes={row['bucket']}",
        ]
        running = [
            f"--accumulation={equality.counts_of(row)}",
            f"--arrivals={row['arrivals']}", f"--hints={equality.hints_of(row)}",
            f"--threads-per-rank={row['threads']}", "--inputs=0.0078125",
        ]
        yield (runner.step(row, "mean"), f"dp={row['ranks']}", row["ranks"], lowering,
               running)


def draw_meshes(rng, folder, count):
    """Steps and flags of meshes of topology.py with two to eight ranks."""
    sizes = {}
    for mesh in topology.MESHES:
        ranks = 1
        for axis in mesh.split(","):
            ranks *= int(axis.split("=")[1])
        if 1 < ranks <= 8:
            sizes[mesh] = ranks
    for mesh in rng.sample(list(sizes), count) if count else sizes:
        step = folder / f"mesh-{mesh}.mlir"
        topology.write_step(mesh, "tokens", step, gathers_bf16=rng.random() < 0.5)
        stage = rng.choice([0, 1, 2, 3, 3])
        host = "parameters" if stage == 3 else "optimizer"
        lowering = [f"--stage={stage}", f"--offload={rng.choice(['none', host])}",
                    "--bucket-bytes=2KiB"]
        running = ["--accumulation=1,3,2", "--arrivals=shuffled", "--measure"]
        yield step, mesh, sizes[mesh], lowering, running


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="folder of zero-run")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--rows", type=int, default=12, help="of equality.py; 0: all of its rows")
    parser.add_argument("--meshes", type=int, default=6, help="of topology.py; 0: all of them")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    kinds = ["shared", "tcp"]
    with_mpi = options.bin / "zero-run-mpi"
    if with_mpi.exists() and shutil.which("mpiexec"):
        kinds.append("mpi")
    kinds.append("nccl")
    print(f"seed {options.seed}, {', '.join(kinds)}"
          + ("" if "mpi" in kinds else "; mpi left out: zero-run-mpi is not built"), flush=True)

    claims = Claims()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(kind, ranks, arguments):
            """What a run reports, or an error."""
            if kind == "mpi":
                command = ["mpiexec", "-n", str(ranks), with_mpi, *arguments]
            elif kind == "nccl":
                command = [options.bin / "zero-run-nccl", *arguments]
            else:
                command = [options.bin / "zero-run", *arguments, f"--group={kind}"]
            try:
                done = subprocess.run(command, capture_output=True, text=True,
                                      timeout=LIMIT, env=os.environ | MPI)
                report = json.loads(done.stdout)
            except subprocess.TimeoutExpired:
                return f"no result in {LIMIT} s"
            except json.JSONDecodeError:
                return done.stderr.strip()
            if done.returncode != 0:
                return f"exit code {done.returncode}: {report.get('errors')}"
            return {key: report[key] for key in ("state_hash", "steps", "counters")}

        runner = equality.Runner(options.bin)
        steps = [*draw_equality(rng, runner, options.rows),
                 *draw_meshes(rng, folder, options.meshes)]
        for number, (step, mesh, ranks, lowering, running) in enumerate(steps):
            built = folder / f"built-{number}"
            subprocess.run([options.bin / "zero-compile", step, "-o", built,
                            "--target=cuda", f"--mesh={mesh}", *lowering],
                           check=True, capture_output=True)
            arguments = [step, f"--mesh={mesh}", *lowering, *running, "--json",
                         "--against=none", f"--library={built / 'libtrain.so'}"]
            expected = run("threads", ranks, arguments)
            for kind in kinds:
                if kind == "nccl" and ranks > 2:
                    arguments = [*arguments, "--gradients=exact"]
                    expected = run("threads", ranks, arguments)
                what = f"{mesh} {' '.join(lowering + running)}"
                got = run(kind, ranks, arguments)
                wrong = "" if got == expected and isinstance(got, dict) else first_difference(
                    got, expected)
                claims.claim(kind, what, not wrong, wrong)
    return claims.finish()


def first_difference(got, expected):
    for what in (got, expected):
        if isinstance(what, str):
            return what
    key = next(key for key in got if got[key] != expected[key])
    return f"{key} is {got[key]}, of threads {expected[key]}"


if __name__ == "__main__":
    sys.exit(main())
