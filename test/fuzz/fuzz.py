#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damages the .mlir files of this repository and looks for crashes of zero-opt.

An input is a damaged piece of a file (the text between two '// -----' lines). damage.py
makes the inputs. zero-opt parses and verifies each input, lowers each step in several
ways, and proves it. An error message is fine. A signal, an abort, a report of a
sanitizer, a fatal error of LLVM and a run without end are crashes.

One process runs many inputs, because starting a process costs more than an input. When
a process dies, each of its inputs runs alone.

UPSTREAM in fuzz.py lists crashes of MLIR itself. They are counted and fail nothing.

examples:
  fuzz.py --bin build/bin                                  the run of the tests
  fuzz.py --bin build/bin --seconds 600 --seed 7           longer, another seed
  fuzz.py --bin build/bin --save /tmp/crashes              saves crashes, reduced
  fuzz.py --bin build/bin --replay /tmp/crashes/0.mlir     one input again

exit codes: 0 no crash of zero-opt, 1 a crash, 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from damage import Pieces, damage

SPLIT = "\n// -----\n"


def names_value_early(text: str) -> bool:
    """Whether an op names a value that no enclosing region has defined before."""
    scopes: list[set[str]] = [set()]
    for line in text.split("\n"):
        defined = re.match(r"\s*((?:%[\w$.-]+(?::\d+)?,?\s*)+)=", line)
        left = defined.end() if defined else 0
        arguments: list[str] = []
        if re.match(r"\s*(?:\^|zero\.step)", line):
            arguments = re.findall(r"(%[\w$.-]+)\s*:", line)
        for name in re.findall(r"%[\w$.-]+", line[left:]):
            known = name in arguments or any(name in scope for scope in scopes)
            if not known:
                return True
        scopes[-1].update(re.findall(r"%[\w$.-]+", line[:left]))
        scopes += [set() for _ in range(line.count("{"))]
        scopes[-1].update(arguments)
        del scopes[max(len(scopes) - line.count("}"), 1) :]
    return False


# Crashes of MLIR and LLVM: a description, a regular expression that occurs in the
# report, and a condition on the input.
#
# The second crash breaks the heap: an op names a value, a later region defines it, and
# the region does not parse. The parser frees the value and not its use
# (Operation::dropAllReferences writes to it). Mostly a later input of the process dies
# of it. So a process is counted, and fails nothing, if none of its inputs dies alone.
# The sanitizer build finds heap errors of our own.
UPSTREAM: dict[str, tuple[str, Callable[[str], object]]] = {
    "the parser makes a list as long as a result's number": (
        r"out of memory",
        re.compile(r"%\w+#\d{9,}").search,
    ),
    "the parser frees a value that an op in front of its region names": (
        r"(?s)\A(?!.*(?:Assertion `|UNREACHABLE|runtime error: |Sanitizer)).*: error: ",
        names_value_early,
    ),
    "the printer reads beyond an array of i1 that was written as numbers": (
        r"printDenseArrayAttr|SIGSEGV",
        re.compile(r"array<i1: ?\d").search,
    ),
}

# The flags of each run. zero-opt splits its input and continues after an error. The
# steps use the mesh of the examples, so each lowering is reached.
MODES: dict[str, list[str]] = {
    "verify": [],
    "lower-1": ["--zero-lower=stage=1"],
    "lower-2": ["--zero-lower=stage=2 offload=optimizer bucket-bytes=256"],
    "lower-0": ["--zero-lower=stage=0"],
    "prove": ["--zero-prove"],
    "to-zrt": ["--zero-coalesce-scalars", "--zero-lower-to-zrt"],
}

REPORTS = [
    "LLVM ERROR",
    "PLEASE submit a bug report",
    "AddressSanitizer",
    "UndefinedBehaviorSanitizer",
    "runtime error: ",
    "Assertion `",
    "UNREACHABLE executed",
    "terminate called",
    "Stack dump",
]


class Tool:
    def __init__(self, binary: pathlib.Path, limit: float):
        self.binary = binary
        self.limit = limit
        self.folder = tempfile.TemporaryDirectory(prefix="fuzz")
        self.file = pathlib.Path(self.folder.name, "input.mlir")

    def run(self, text: str, flags: list[str]) -> tuple[int | None, str]:
        """The exit code and the output. The exit code of a run without end is None."""
        self.file.write_text(text, encoding="latin-1", errors="replace")
        command = [str(self.binary), str(self.file), "-o", "/dev/null", *flags]
        begin = time.monotonic()
        with tempfile.TemporaryFile() as errors:
            with subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            ) as process:
                code: int | None = None
                while code is None:
                    try:
                        code = process.wait(2)
                    except subprocess.TimeoutExpired:
                        # LLVM's report of a broken heap may wait for the heap.
                        errors.seek(0)
                        died = b"Stack dump" in errors.read()
                        if died or time.monotonic() - begin > self.limit:
                            process.kill()
                            break
            errors.seek(0)
            return code, errors.read().decode("latin-1")

    def print_valid(self, pieces: list[str], flags: list[str]) -> list[str]:
        """The valid ones of |pieces|, as zero-opt prints them."""
        self.file.write_text(SPLIT.join(pieces), encoding="latin-1", errors="replace")
        done = subprocess.run(
            [self.binary, self.file, "--split-input-file", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        printed = re.split(
            r"^// -----\n", done.stdout.decode("latin-1"), flags=re.MULTILINE
        )
        # An empty module has nothing to damage.
        return [text.strip("\n") for text in printed if text.count("\n") > 3]

    def describe(self, text: str, flags: list[str]) -> str | None:
        """The crash on |text| in one line, or None."""
        code, output = self.run(text, flags)
        return find_crash(code, output)


def find_crash(code: int | None, output: str) -> str | None:
    """One line that describes the crash of a run, or None."""
    lines = output.splitlines()
    found = next((line for line in lines if any(r in line for r in REPORTS)), None)
    if code is None:
        kind = "ran without end"
    elif code < 0:
        kind = signal.Signals(-code).name
    elif code > 128:
        kind = f"exit code {code}"
    elif found:
        kind = "report"
    else:
        return None
    # The innermost function of ours, or else of MLIR, identifies a crash.
    frames = re.findall(r"^\s*#\d+ 0x[0-9a-f]+ (?:in )?(.+?)\(", output, re.MULTILINE)
    ours = [f for f in frames if re.match(r"(?:zero|zrt)::[\w:]+$", f)]
    theirs = [f for f in frames if re.search(r"mlir::(?!detail)", f)]
    where = (ours or theirs or [""])[0].strip()
    what = ""
    if found and "Stack dump" not in found and "PLEASE" not in found:
        what = re.sub(r"^\S*zero-opt: ", "", found.strip())[:160]
    return " ".join(x for x in (kind, where, what) if x)


def find_upstream(output: str, text: str) -> str | None:
    for name, (report, cause) in UPSTREAM.items():
        if re.search(report, output) and cause(text):
            return name
    return None


def reduce_crash(tool: Tool, text: str, flags: list[str], seconds: float = 20) -> str:
    """Drops lines while the crash stays the same."""
    wanted = tool.describe(text, flags)
    end = time.monotonic() + seconds
    lines, size = text.split("\n"), max(len(text.split("\n")) // 2, 1)
    while time.monotonic() < end:
        at, shrunk = 0, False
        while at < len(lines) and time.monotonic() < end:
            fewer = lines[:at] + lines[at + size :]
            if tool.describe("\n".join(fewer), flags) == wanted:
                lines, shrunk = fewer, True
            else:
                at += size
        if size == 1 and not shrunk:
            break
        size = max(size // 2, 1)
    return "\n".join(lines)


class Crashes:
    """The crashes so far, by description, and their reports."""

    def __init__(self, tool: Tool, save: pathlib.Path | None):
        self.tool = tool
        self.save = save
        self.ours: dict[str, int] = {}
        self.upstream: dict[str, int] = {}
        # Processes that died although none of their inputs crashes alone.
        self.unexplained = 0

    def count(self) -> int:
        return sum(self.ours.values()) + sum(self.upstream.values())

    def add(self, text: str, mode: str) -> int | None:
        """Runs |text| alone and returns the exit code."""
        code, output = self.tool.run(text, MODES[mode])
        crash = find_crash(code, output)
        if crash is None:
            return code
        known = find_upstream(output, text)
        if known:
            self.upstream[known] = self.upstream.get(known, 0) + 1
            return code
        self.ours[crash] = self.ours.get(crash, 0) + 1
        if self.ours[crash] > 1:
            return code
        begin = "\r\033[K" if sys.stdout.isatty() else ""
        print(f"{begin}crash: {mode}: {crash}", flush=True)
        if self.save:
            self.save.mkdir(parents=True, exist_ok=True)
            path = self.save / f"{len(self.ours) - 1}.mlir"
            small = reduce_crash(self.tool, text, MODES[mode])
            header = (
                f"// zero-opt {' '.join(repr(f) for f in MODES[mode])}\n// {crash}\n"
            )
            path.write_text(header + small + "\n", encoding="latin-1", errors="replace")
            print(f"  saved to {path}", flush=True)
        else:
            print("  the input follows; --save FOLDER saves it, reduced")
            print(
                "\n".join("  | " + line for line in text.split("\n")[:60]), flush=True
            )
        return code


def run_batch(tool: Tool, inputs: list[str], mode: str, crashes: Crashes) -> list[str]:
    """Runs |inputs| in one process, or each alone if it dies. Returns the valid ones."""
    text = SPLIT.join(inputs)
    code, output = tool.run(text, [*MODES[mode], "--split-input-file"])
    if find_crash(code, output):
        before = crashes.count()
        right = [one for one in inputs if crashes.add(one, mode) == 0]
        crashes.unexplained += crashes.count() == before
        return right
    if code == 0:
        return inputs
    # In "within split at FILE:LINE offset :2:3: error: ...", the piece begins at LINE.
    begins = {}
    line = 1
    for i, one in enumerate(inputs):
        begins[line] = i
        line += one.count("\n") + SPLIT.count("\n")
    failed = set()
    for place in re.findall(r"^within split at .*?:(\d+) offset", output, re.MULTILINE):
        failed.add(max((b for b in begins if b <= int(place)), default=1))
    return [inputs[i] for begin, i in begins.items() if begin not in failed]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--bin", required=True, type=pathlib.Path, help="folder that has zero-opt"
    )
    parser.add_argument(
        "--count", type=int, default=3000, help="number of inputs (default 3000)"
    )
    parser.add_argument(
        "--seconds", type=float, help="run for this time instead of --count inputs"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the damage (default 1)"
    )
    parser.add_argument(
        "--batch", type=int, default=60, help="inputs per process (default 60)"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=20,
        help="seconds that one input may take (default 20)",
    )
    parser.add_argument(
        "--save", type=pathlib.Path, help="folder for inputs that crash, reduced"
    )
    parser.add_argument(
        "--replay", type=pathlib.Path, help="run only this input, in all modes"
    )
    options = parser.parse_args()
    binary = options.bin / "zero-opt"
    if not binary.is_file():
        parser.error(
            f"{options.bin} has no zero-opt; give --bin the folder of the tools"
        )
    if options.count < 1 or options.batch < 1 or options.limit <= 0:
        parser.error("--count, --batch and --limit must be positive")

    tool = Tool(binary, options.limit)
    crashes = Crashes(tool, options.save)
    if options.replay:
        text = options.replay.read_text(encoding="latin-1")
        for mode in MODES:
            crashes.add(text, mode)
        return finish(crashes, 1)

    pick = random.Random(options.seed)
    pieces = Pieces(tool.print_valid)
    begin = last = time.monotonic()
    done = right = 0
    while True:
        now = time.monotonic() - begin
        if now >= options.seconds if options.seconds else done >= options.count:
            break
        left = (
            options.batch
            if options.seconds
            else min(options.batch, options.count - done)
        )
        inputs = [damage(pieces, pick) for _ in range(left)]
        # An input that does not verify fails in every mode.
        modes = iter(MODES)
        good = run_batch(tool, inputs, next(modes), crashes)
        for mode in modes:
            if good:
                run_batch(tool, good, mode, crashes)
        done += left
        right += len(good)
        if sys.stdout.isatty() and time.monotonic() - last > 0.5:
            last = time.monotonic()
            goal = (
                f"{options.seconds:.0f} s"
                if options.seconds
                else f"{options.count} inputs"
            )
            print(
                f"\r\033[K{done} inputs in {now:.0f} s, of {goal}; {len(crashes.ours)} crashes",
                end="",
                flush=True,
            )
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    print(
        f"{len(pieces.all)} pieces, {len(pieces.good)} valid ones, seed {options.seed}, {time.monotonic() - begin:.0f} s"
    )
    print(f"{right} inputs verified and were lowered and proved")
    return finish(crashes, done)


def finish(crashes: Crashes, done: int) -> int:
    for known, times in sorted(crashes.upstream.items()):
        print(f"of MLIR itself: {known}: {times} times")
    if crashes.unexplained:
        print(
            f"{crashes.unexplained} processes died, and none of their inputs crashes alone; "
            "see UPSTREAM"
        )
    for crash, times in crashes.ours.items():
        print(f"{crash}: {times} times")
    print(f"{done} inputs in {len(MODES)} modes: {len(crashes.ours)} crashes")
    return 1 if crashes.ours else 0


if __name__ == "__main__":
    sys.exit(main())
