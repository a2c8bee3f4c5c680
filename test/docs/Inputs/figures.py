#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares figures of the pages with the code that they describe.

  figures.py SOURCE         compares all figures
  figures.py SOURCE PAGE    compares those of README.md, and reads PAGE in its place

A figure that is not listed here stands beside the command that measures it, or is the
output of a command that test/docs/tutorial.test runs.
"""

import importlib.util
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])


def module(name):
    """A script of the tests, imported."""
    path = ROOT / "test" / name
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def number(name, pattern):
    """The number at the group of |pattern| in a file."""
    return int(re.search(pattern, (ROOT / name).read_text())[1])


def count_known_bugs():
    cases = (ROOT / "test/known-bugs").glob("*.test")
    return sum("# System:" in path.read_text() for path in cases)


def count_configurations():
    equality = module("exec/equality.py")
    return math.prod(len(equality.AXES[name]) for name in equality.CHOSEN)


def count_meshes(part=""):
    return sum(part in mesh for mesh in module("exec/topology.py").MESHES)


def count_minutes(most):
    """Of the pieces of gpu-check: the longest, or all."""
    limits = [piece.seconds for piece in module("gpu/check.py").PIECES.values()]
    return math.ceil(most(limits) / 60)


def count_gpu_steps():
    """The steps that gpu-check.sh compiles for the piece `libraries`."""
    script = (ROOT / "tools/scripts/gpu-check.sh").read_text()
    script = script[script.index("make_folder() {"):script.index("  make_bench\n")]

    def words(name):
        loop = re.search(rf"for {name} in (.*?); do", script, re.DOTALL)[1]
        return len(re.findall(r'"[^"]*"|[\w.]+', loop.replace("\\\n", " ")))

    stages, offloaded = words("stage"), words("stage") - 1  # not at stage 0
    units = script.count('compile "ranks${ranks}_stage3')
    single = len(re.findall(r"^  compile (?!\")", script, re.MULTILINE))
    return (words("optimizer") * words("types")
            + words("ranks") * (stages + offloaded + units)
            + words("type") + words("example") + single)


# The smallest unit of work of the CPU's threads.
THREADS = "runtime/core/thread_pool.h"
LIBRARY = "runtime/include/zero_rt/cuda_code.h"
DOOR = "runtime/comm/tcp/door.cpp"
MEETING = "runtime/comm/tcp/meeting.cpp"
DESYNC = "runtime/comm/process/desync_check.cpp"
PTXAS = "test/cuda/ptxas.py"
# The page, the text around the figure, and the number that it must be.
FIGURES = [
    ("README.md", "has # bugs of", count_known_bugs),
    ("README.md", "all # configurations", count_configurations),
    ("README.md", "on # meshes", count_meshes),
    ("README.md", "meshes, # of them with pipeline stages", lambda: count_meshes("pp=")),
    ("README.md", "for sm_# and later",
     lambda: number("codegen/cuda/EmitPtx.cpp", r'"sm_(\d+)"')),
    ("passes/prove/README.md", "damages # lowered steps",
     lambda: len(module("mutants/mutants.py").SEEDS)),
    ("passes/prove/README.md", "generation in # ways",
     lambda: len(module("mutants/breaks.py").BREAKS)),
    ("codegen/README.md", "breaks code generation in # ways",
     lambda: len([b for b in module("mutants/breaks.py").BREAKS if b[0] == "library"])),
    ("runtime/README.md", "in chunks of # elements",
     lambda: number(THREADS, r"chunkElements = (\d+) \* blockElements")
     * number(THREADS, r"blockElements = (\d+)")),
    ("runtime/README.md", "at most # KiB at a time",
     lambda: 2 ** number("runtime/comm/process/collectives.cpp",
                         r"chunkBytes = int64_t\(1\) << (\d+)") // 1024),
    ("runtime/README.md", "A tag of # bytes precedes",
     lambda: number("runtime/comm/process/collective_tag.h",
                    r"sizeof\(TagMessage\) == (\d+)")),
    ("runtime/README.md", "contains payload of at most # bytes",
     lambda: number("runtime/comm/process/collective_tag.h",
                    r"char payload\[(\d+)\]")),
    ("runtime/README.md", "A slice of at most # KiB",
     lambda: number("runtime/comm/process/collectives.cpp",
                    r"mostShortBytes = (\d+)") // 1024),
    ("runtime/README.md", "does the same every # ms",
     lambda: number("runtime/comm/process/watchdog.cpp", r"milliseconds\((\d+)\)")),
    ("runtime/README.md", "two times # launches",
     lambda: number("runtime/device/cuda/cuda_streams.cpp", r"distance = (\d+)")),
    ("runtime/README.md", "serves up to # connections",
     lambda: number(DOOR, r"mostVisitors = (\d+)")),
    ("runtime/README.md", "each for at most # s. Where",
     lambda: number(DOOR, r"patienceOfDoor = std::chrono::seconds\((\d+)\)")),
    ("runtime/README.md", "nobody before # ms",
     lambda: number(DOOR, r"leastStay = std::chrono::milliseconds\((\d+)\)")),
    ("runtime/README.md", "or before # ms if",
     lambda: number(DOOR, r"leastSilence = std::chrono::milliseconds\((\d+)\)")),
    ("runtime/README.md", "at first for # ms",
     lambda: number(MEETING, r"leastPatience = std::chrono::milliseconds\((\d+)\)")),
    ("runtime/README.md", "ms and at most for # s, loopback",
     lambda: number(MEETING, r"mostPatience = std::chrono::milliseconds\((\d+)\)") // 1000),
    ("runtime/README.md", "sends reports of # steps",
     lambda: number("runtime/comm/process/reports.cpp", r"mostSteps = (\d+)")),
    ("runtime/README.md", "steps, messages of # groups",
     lambda: number(DESYNC, r"mostGroups = (\d+)")),
    ("runtime/README.md", "groups, or # collectives ahead",
     lambda: number(DESYNC, r"mostAhead = (\d+)")),
    ("runtime/device/README.md", "more than # ranks",
     lambda: number(LIBRARY, r"define ZERO_RT_CUDA_MOST_RANKS (\d+)")),
    ("runtime/device/README.md", "at most # minutes, and all",
     lambda: count_minutes(max)),
    ("runtime/device/README.md", "of them at most # minutes",
     lambda: count_minutes(sum)),
    ("codegen/cuda/README.md", "of at most # elements",
     lambda: number("codegen/kernels/Loops.h", r"kSumBlock = (\d+)")),
    ("codegen/cuda/README.md", "at most # registers",
     lambda: number(PTXAS, r"MOST_REGISTERS = (\d+)")),
    ("codegen/cuda/README.md", "(# for the sum of 16 ranks)",
     lambda: number(PTXAS, r"MOST_REGISTERS_OF_MANY = (\d+)")),
    ("codegen/cuda/README.md", "for the sum of # ranks",
     lambda: number(LIBRARY, r"define ZERO_RT_CUDA_MOST_RANKS (\d+)")),
    ("passes/prove/README.md", "damages # lowered steps",
     lambda: len(module("mutants/mutants.py").SEEDS)),
    ("passes/prove/README.md", "In # scheduled steps",
     lambda: len(module("mutants/mutants.py").SCHEDULED)),
    ("docs/gpu.md", "| # steps: 4 optimizers", count_gpu_steps),
    ("README.md", "on an H100 # steps have", count_gpu_steps),
    ("docs/gpu.md", "one rank; # steps on two processes",
     lambda: len(module("gpu/check.py").ON_PROCESSES)),
    ("docs/gpu.md", "| # steps under memcheck",
     lambda: len(module("gpu/check.py").SANITIZED)),
    ("docs/gpu.md", "a warp for each # elements",
     lambda: number("codegen/kernels/Loops.h", r"kSumBlock = (\d+)")),
    ("docs/gpu.md", "which loads # rows at once",
     lambda: number("codegen/cuda/EmitKernel.cpp", r"kRows = (\d+)")),
]


def main():
    own = sys.argv[2] if len(sys.argv) > 2 else None
    wrong = 0
    for page, text, count in FIGURES:
        if own and page != "README.md":
            continue
        lines = pathlib.Path(own or ROOT / page).read_text()
        before, after = map(re.escape, text.split("#"))
        found = re.search(rf"{before}(\d+(?: \d{{3}})*){after}", " ".join(lines.split()))
        told = int(found[1].replace(" ", "")) if found else None
        if told != count():
            wrong += 1
            print(f"{page}: '{text}' is {told}, expected {count()}")
    print(f"{wrong} wrong figures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
