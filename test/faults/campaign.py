#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small jobs with one fault each, and the answers of the other ranks.

A point is GROUP/STAGE/RANKS/FAULT@MOMENT[.VISIT][+COUNT]:RANK, for example
tcp/one/3/kill@apply.1+2:0: of three processes that train at stage 1 over TCP, rank 0
is killed in its second message of the second apply. job.c describes the faults. Here a
process that has the fault `pause` or `freeze` stops, and continues after 0.3 or 1.6
times the timeout. Ranks of `shared` are connected over TCP, too, and read each other's
memory. Of `mixed`, the last rank does not, as on another machine.

Each point has an expected answer:

  time    every other rank ends within the timeout and one second after the fault;
  bits    a rank that makes all calls has the bits of a job without a fault;
  blame   the first error of every other rank names the rank with the fault and no
          other rank; a rank out of memory is named as that;
  none    after a pause or delay shorter than the timeout no rank has an error.

MPI ends a job with a process that was killed. Ranks that it ended need no answer.

A job may end before the message or allocation with the fault. Such a point does not
count, and other moments are drawn for its fault. The campaign fails if the faults of too
few points happen, as when job.c misses messages.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "exec" / "Inputs"))
from free_port import free_port  # noqa: E402

STAGES = {"one": 1, "two": 2, "three": 3}
# Of quickstart.mlir. Only stage 3 gathers them.
UNITS = """zero.unit @layer1 [@fc1.weight, @fc1.bias]
zero.unit @layer2 [@fc2.weight, @fc2.bias]
zero.group @decay"""
# Points that showed a mistake, and come before those that are drawn: ranks that waited for
# a rank that waited for the one that had stopped named the wrong one; a rank without memory
# left the others in a collective of MPI, and so did one that did not come to it.
ONCE_WRONG = ["tcp/one/4/stop@connect+4:1", "mpi/one/3/memory@connect+1:0",
              "mpi/one/2/stop@connect:0"]
SHORT, LONG = 0.3, 1.6  # times the timeout
STOPS = {"pause": SHORT, "freeze": LONG}
REDRAWS = 4  # of a point that was not reached
REACHED = 0.9  # the share of points that must be reached, of each group and each fault
BENIGN = {"none", "pause", "delay"}
TCP_FAULTS = ["kill", "stop", "pause", "freeze", "delay", "late", "leave", "memory"]
FAULTS = {
    "tcp": TCP_FAULTS,
    "shared": TCP_FAULTS,
    "mixed": TCP_FAULTS,
    "mpi": TCP_FAULTS,
    "threads": ["delay", "late", "leave"],
}
RANKS = {
    "tcp": [2, 3, 4],
    "shared": [2, 3, 4],
    "mixed": [3, 4],
    "mpi": [2, 3],
    "threads": [2, 3, 4],
}
OVER_TCP = ["tcp", "shared", "mixed"]
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}
# Rank 0 at a port is named by its address, too.
BLAMES = [
    r"rank (\d+) is gone",
    r"ranks? (\d+(?:, \d+)*) did not come",
    r"rank (\d+) destroyed",
    r"rank (\d+) does not answer",
    r"rank (\d+)(?: at \S+ port \d+)? (?:did not|hung up)",
    r"rank (\d+)[^;]*out of memory",
]
NOBODY_LISTENS = "nobody listens at"


@dataclasses.dataclass(frozen=True)
class Point:
    group: str
    stage: str
    ranks: int
    fault: str
    moment: str  # a call, with its number and the number of a message
    rank: int

    def __str__(self):
        return (
            f"{self.group}/{self.stage}/{self.ranks}/"
            f"{self.fault}@{self.moment}:{self.rank}"
        )

    def shares(self, rank):
        """Whether other processes read the memory of |rank|."""
        is_last = rank == self.ranks - 1
        return self.group in ("shared", "mpi") or (self.group == "mixed" and not is_last)

    @staticmethod
    def parse(text):
        match = re.fullmatch(
            r"(tcp|shared|mixed|mpi|threads)/(one|two|three)/([234])/([a-z]+)@([a-z.+\d]+):(\d+)", text
        )
        if not match:
            sys.exit(f"campaign.py: '{text}' is no point; --list shows some")
        group, stage, ranks, fault, moment, rank = match.groups()
        return Point(group, stage, int(ranks), fault, moment, int(rank))


def moments(group, stage, fault):
    """The moments of a fault, by phase of a job."""
    counts = [1, 2, 3, 4, 6, 8, 12]
    if fault == "memory":
        counts = [1, 3, 6, 9, 12, 15, 18, 21, 25, 30]
    if group == "threads":
        counts = []
    # The last gradient of a backward pass closes its buckets at stage 2, and at stage 3
    # the end of a unit, which was used in a forward pass before.
    reduce = {"one": ["apply", "apply.1"], "two": ["gradient.3", "gradient.7"],
              "three": ["reshard.2", "reshard.7"]}[stage]
    gather = ["unshard", "unshard.3"]
    phases = {
        "connect": ["connect"] + [f"connect+{n}" for n in counts],
        "create": ["create"] + [f"create+{n}" for n in counts],
        "gradient": ["gradient", "gradient.2", "gradient.5"],
        "reduce": [f"{call}+{n}" for call in reduce for n in counts],
        "gather": gather + [f"{call}+{n}" for call in gather for n in counts],
        "apply": ["apply", "apply.1"] + [f"apply.1+{n}" for n in counts],
        "results": ["results", "results.1"],
        "destroy": ["destroy"] + [f"destroy+{n}" for n in counts[:3]],
    }
    if stage != "three":
        del phases["gather"]
    if group == "threads":
        del phases["connect"], phases["reduce"]
    if fault == "memory":  # it needs an allocation
        phases = {name: [m for m in of if "+" in m] for name, of in phases.items()}
    return {name: of for name, of in phases.items() if of}


def count_of(moment):
    """The number of the message or allocation, or 0."""
    return int(moment.partition("+")[2] or 0)


def all_points(groups):
    for group in groups:
        for stage in STAGES:
            for ranks in RANKS[group]:
                for fault in FAULTS[group]:
                    for of in moments(group, stage, fault).values():
                        for moment in of:
                            for rank in range(ranks):
                                yield Point(group, stage, ranks, fault, moment, rank)


def draw(groups, rng):
    """Draws a phase before a moment, since phases have different numbers of them."""
    weights = {"tcp": 3, "shared": 4, "mixed": 2, "mpi": 1, "threads": 1}
    group = rng.choices(groups, [weights[group] for group in groups])[0]
    stage = rng.choice(list(STAGES))
    ranks = rng.choice(RANKS[group])
    fault = rng.choice(FAULTS[group])
    phases = moments(group, stage, fault)
    moment = rng.choice(phases[rng.choice(list(phases))])
    return Point(group, stage, ranks, fault, moment, rng.randrange(ranks))


def redraws(point, seed):
    """Points with the fault of |point| at moments that are more and more likely.

    A fault at a call needs none. A fault at a message stays at messages: where none are
    counted, no point may be reached."""
    rng = random.Random(f"{seed} {point}")
    phases = moments(point.group, point.stage, point.fault)
    counts = {moment: count_of(moment) for of in phases.values() for moment in of}
    limit = count_of(point.moment)
    for _ in range(REDRAWS if limit else 0):
        limit = max(limit // 2, 1)
        moment = rng.choice([m for m, count in counts.items() if 0 < count <= limit])
        yield dataclasses.replace(point, moment=moment)


class Jobs:
    """Builds the programs, and runs points."""

    def __init__(self, binaries, folder, timeout, mpi):
        self.folder = folder
        self.timeout = timeout
        self.lock = threading.Lock()
        self.ports = set()
        libraries = binaries.parent / "lib"
        text = (ROOT / "examples" / "quickstart.mlir").read_text()
        step = folder / "step.mlir"
        step.write_text(text.replace("zero.group @decay", UNITS, 1))
        for ranks in [2, 3, 4]:
            out = folder / str(ranks)
            for name, stage in STAGES.items():
                subprocess.run(
                    [binaries / "zero-compile", step, "-o", out,
                     f"--mesh=dp={ranks}", f"--stage={stage}", f"--name={name}"],
                    check=True, stdout=subprocess.DEVNULL,
                )
            for compiler, name, flags in [
                ("cc", "job", []),
                ("mpicc", "job_mpi", ["-DWITH_MPI", "-lzero_rt_mpi"]),
            ]:
                if name == "job_mpi" and not mpi:
                    continue
                subprocess.run(
                    [compiler, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra",
                     "-Werror", "-fexceptions", "-DWITH_MEMORY",
                     ROOT / "test" / "faults" / "job.c",
                     f"-I{out}", f"-I{ROOT}/runtime/include", f"-L{libraries}",
                     *flags, "-lzero_rt", "-lpthread", "-lstdc++",
                     f"-Wl,-rpath,{libraries}", "-o", out / name],
                    check=True,
                )
        self.bits = {
            (stage, ranks): self.right_bits(stage, ranks)
            for stage in STAGES
            for ranks in [2, 3, 4]
        }

    def port(self):
        """A port that no other job has."""
        with self.lock:
            while True:
                port = free_port()
                if port not in self.ports:
                    self.ports.add(port)
                    return port

    def right_bits(self, stage, ranks):
        lines = self.run(Point("threads", stage, ranks, "none", "end", 0)).lines
        found = {text for _, what, text in lines if what == "bits"}
        if len(found) != 1 or len(lines) != 3 * ranks:
            sys.exit(f"campaign.py: a job without a fault fails: {lines}")
        return found.pop()

    def run(self, point):
        while True:
            run = Run(self, point).run()
            # The port was free when it was chosen.
            if not any("Address already in use" in text for _, _, text in run.lines):
                return run

    def run_until_reached(self, points):
        """The runs of |points|, up to the first one that was reached or has a problem."""
        runs = []
        for point in points:
            runs.append(self.run(point))
            if runs[-1].fault() or runs[-1].problems:
                break
        return runs


class Run:
    """One point, and what came out."""

    def __init__(self, jobs, point):
        self.jobs = jobs
        self.point = point
        self.lines = []  # (rank, what, text), in order for each rank
        self.ends = {}  # by rank
        self.codes = {}
        self.problems = []

    def command(self):
        point = self.point
        program = "job_mpi" if point.group == "mpi" else "job"
        fault = "stop" if point.fault in STOPS else point.fault
        return [
            self.jobs.folder / str(point.ranks) / program,
            "tcp" if point.group in OVER_TCP else point.group, point.stage,
            str(self.jobs.timeout), f"{fault}@{point.moment}:{point.rank}",
        ]

    def start(self, output):
        """Processes by rank; a single one is of all ranks."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "SHOW_SHARED": "1"}
        if self.point.group in OVER_TCP:
            environment |= {
                "WORLD_SIZE": str(self.point.ranks),
                "MASTER_ADDR": "127.0.0.1",
                "ZERO_RT_PORT": str(self.jobs.port()),
            }
            starts = [
                (self.command(),
                 {**environment, "RANK": str(rank),
                  "ZERO_RT_SHARED_MEMORY": str(int(self.point.shares(rank)))})
                for rank in range(self.point.ranks)
            ]
        elif self.point.group == "mpi":
            starts = [(["mpiexec", "-n", str(self.point.ranks), *self.command()],
                       environment | MPI_ENVIRONMENT)]
        else:
            starts = [(self.command(), environment)]
        return [
            subprocess.Popen(command, env=env, stdout=output, stdin=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
            for command, env in starts
        ]

    def parse(self, text):
        self.lines = re.findall(r"^rank (\d+): ([a-z]+): (.*)$", text, re.M)
        self.lines = [(int(rank), what, text) for rank, what, text in self.lines]
        for rank, what, value in self.lines:
            if what == "done":
                self.ends[rank] = float(value)

    def fault(self):
        """The time of the fault and its process, or None."""
        for _, what, text in self.lines:
            if what == "fault":
                return float(text.split()[0]), int(text.split()[1])
        return None

    def run(self):
        point, limit = self.point, self.jobs.timeout / 1000
        path = pathlib.Path(tempfile.mkstemp(dir=self.jobs.folder)[1])
        start = time.monotonic()
        with path.open("ab") as output:
            processes = self.start(output)
        is_continued = False
        while True:
            self.parse(path.read_text(errors="replace"))
            moment = time.monotonic()
            for rank, process in enumerate(processes):
                if process.poll() is not None and rank not in self.codes:
                    self.codes[rank] = process.returncode
                    if point.group in OVER_TCP:
                        self.ends[rank] = moment
            fault = self.fault()
            pause = STOPS.get(point.fault)
            if fault and pause and moment > fault[0] + pause * limit:
                if not is_continued:
                    os.kill(fault[1], signal.SIGCONT)
                is_continued = True
            awaited = [r for r in range(point.ranks)
                       if r != point.rank or point.fault not in ("stop", "kill")
                       or not fault]
            if len(self.codes) == len(processes) or (
                point.group != "threads" and all(r in self.ends for r in awaited)
            ):
                break
            if moment > (fault[0] if fault else start) + (1 + LONG) * limit + 10:
                break
            time.sleep(0.005)
        for process in processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        # mpiexec gives each rank a process group.
        if self.fault() and point.group == "mpi":
            try:
                os.kill(self.fault()[1], signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.parse(path.read_text(errors="replace"))
        path.unlink()
        self.judge()
        return self

    def judge(self):
        point = self.point
        if (point.stage, point.ranks) not in getattr(self.jobs, "bits", {}):
            return
        fault = self.fault()
        is_benign = point.fault in BENIGN or not fault
        limit = self.jobs.timeout / 1000
        first_errors = {}
        for rank, what, text in self.lines:
            if what == "bits" and text != self.jobs.bits[point.stage, point.ranks]:
                self.problems.append(f"rank {rank} has wrong bits")
            if what == "shared":
                others = [r for r in range(point.ranks) if r != rank]
                expected = sum(map(point.shares, others)) if point.shares(rank) else 0
                if int(text) != expected:
                    self.problems.append(f"rank {rank} reads {text} ranks' memory")
            if what not in ("bits", "fault", "done", "shared") and rank not in first_errors:
                first_errors[rank] = text
        for rank in range(point.ranks):
            has_bits = (rank, "bits") in {line[:2] for line in self.lines}
            error = first_errors.get(rank)
            if is_benign:
                if error or not has_bits:
                    self.problems.append(f"rank {rank} fails: {error}")
                continue
            if rank == point.rank:
                continue
            may_end = point.group == "mpi" and point.fault == "kill"
            if error:
                self.check_blame(rank, error)
            elif not has_bits and not may_end:
                self.problems.append(f"rank {rank} has no result and no error")
            if rank not in self.ends:
                if not may_end:
                    self.problems.append(f"rank {rank} does not end")
            elif self.ends[rank] > fault[0] + limit + 1:
                took = self.ends[rank] - fault[0]
                self.problems.append(f"rank {rank} ends {took:.2f} s after the fault")

    def check_blame(self, rank, error):
        # A rank that nobody knows yet cannot say why it does not come.
        # A rank that can call again destroys a step that is in order.
        is_told = (
            self.point.fault == "memory"
            and "connect" not in self.point.moment
            and not any(rank == self.point.rank and what == "next"
                        and not text.startswith("poisoned")
                        for rank, what, text in self.lines)
        )
        if is_told and "out of memory" not in error:
            self.problems.append(f"rank {rank} does not say 'out of memory': {error}")
        blamed = {0} if NOBODY_LISTENS in error else set()
        for pattern in BLAMES:
            for ranks in re.findall(pattern, error):
                blamed |= {int(r) for r in ranks.split(", ")}
        if blamed != {self.point.rank}:
            self.problems.append(f"rank {rank} blames {sorted(blamed)}: {error}")


def rarely_reached(runs):
    """A line for each group and each fault of which too few points were reached."""
    reached = collections.defaultdict(list)
    for run in runs:
        for name in (run.point.group, run.point.fault):
            reached[name].append(run.fault() is not None)
    return [
        f"campaign.py: only {sum(of)} of {len(of)} points of '{name}' reached the fault"
        for name, of in reached.items()
        if sum(of) < REACHED * len(of)
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--count", type=int, default=100, metavar="N",
                        help="the number of points to draw (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--all", action="store_true", help="run all points (hours)")
    parser.add_argument("--point", action="append", metavar="P", help="run this one")
    parser.add_argument("--list", action="store_true", help="only print the points")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    parser.add_argument("--groups", default="tcp,shared,mixed,mpi,threads")
    parser.add_argument("--timeout", type=int, default=1000, metavar="MS",
                        help="of the ranks (%(default)s)")
    parser.add_argument("--jobs", type=int, default=6, metavar="N",
                        help="the number of jobs at the same time (%(default)s)")
    arguments = parser.parse_args()

    # The runtime over MPI is built where there is MPI.
    has_mpi = (arguments.bin.parent / "lib" / "libzero_rt_mpi.so").exists()
    groups = [g for g in arguments.groups.split(",") if g != "mpi" or has_mpi]
    if arguments.point:
        points = [Point.parse(text) for text in arguments.point]
    elif arguments.all:
        points = list(all_points(groups))
    else:
        rng = random.Random(arguments.seed)
        points = [Point.parse(text) for text in ONCE_WRONG if text.split("/")[0] in groups]
        points += [draw(groups, rng) for _ in range(arguments.count)]
    if arguments.list:
        print(*points, sep="\n")
        return 0

    start = time.monotonic()
    runs = []
    missed = 0
    draws = [[point] if arguments.point else [point, *redraws(point, arguments.seed)]
             for point in points]
    with tempfile.TemporaryDirectory() as folder:
        jobs = Jobs(arguments.bin.resolve(), pathlib.Path(folder), arguments.timeout,
                    any(point.group == "mpi" for point in points))
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for tried in pool.map(jobs.run_until_reached, draws):
                run = tried[-1]
                runs.append(run)
                missed += len(tried) - bool(run.fault())
                failed = sum(bool(run.problems) for run in runs)
                end = "\r" if sys.stderr.isatty() else "\n"
                if sys.stderr.isatty() or len(runs) % 25 == 0:
                    print(f"{len(runs)}/{len(points)} points, {failed} failed", end=end,
                          file=sys.stderr, flush=True)
                if run.problems and not arguments.json:
                    print(f"{run.point}:", *run.problems, sep="\n  ")
                    print(f"  repeat with: {sys.argv[0]} --bin {arguments.bin} "
                          f"--timeout {arguments.timeout} --point '{run.point}'")
    reached = sum(run.fault() is not None for run in runs)
    print(f"{len(runs)} points in {time.monotonic() - start:.1f} s: {failed} failed, "
          f"{reached} reached the fault, {missed} draws did not", file=sys.stderr)
    too_few = rarely_reached(runs)
    for line in too_few:
        print(line, file=sys.stderr)
    if arguments.json:
        print(json.dumps([
            {"point": str(run.point), "problems": run.problems,
             "reached": run.fault() is not None, "lines": run.lines}
            for run in runs
        ], indent=1))
    return 1 if failed or too_few else 0


if __name__ == "__main__":
    sys.exit(main())
