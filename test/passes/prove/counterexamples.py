#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the rejections of wrong steps that have a counterexample in numbers.

  counterexamples.py --build FOLDER             prints the share
  counterexamples.py --build FOLDER --list      prints each rejection without one
  counterexamples.py --build FOLDER --least 90  fails if the share is less

It runs the tests of known bugs and of wrong steps. Each call of zero-prove that must
fail is a rejection. The share is that of the rejections whose first error is about a number:
a new state, a result, a gradient or the outcome. Other errors are about the order of calls,
memory, types and tables, and no number shows them.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = [SOURCE / "test/known-bugs", SOURCE / "test/passes/prove/wrong"]
RUN = re.compile(r"^# RUN: (.*)$", re.M)
DEFINE = re.compile(r"^# DEFINE: (%\{\w+\}) = *(.*)$", re.M)
REJECTION = re.compile(r"^not (zero-prove .*?)(2>&1 )?\|.*$")
NUMBER = re.compile(
    r"element |result |of a skipped step, |whether the step is applied|gradient of '.*' reaches|"
    r"parameter of '.*' of group|new state "
)
# The test itself went wrong here.
BROKEN = re.compile(r"cannot open input file|has no zero.step")


def read_runs(test):
    """The RUN lines, in one line each, with what DEFINE lines define."""
    text = test.read_text()
    runs = [""]
    for line in RUN.findall(text):
        runs[-1] += line.removesuffix("\\")
        if not line.endswith("\\"):
            runs.append("")
    for name, value in reversed(DEFINE.findall(text)):
        runs = [line.replace(name, value) for line in runs]
    return runs[:-1]


def expand(line, test, temporary):
    known = {
        "%zero_src": str(SOURCE),
        "%edit": f"{sys.executable} -S {SOURCE}/test/edit.py",
        "%python": sys.executable,
        "%S": str(test.parent),
        "%p": str(test.parent),
        "%s": str(test),
        "%t": str(temporary),
        "%%": "%",
    }
    return re.sub("|".join(known), lambda match: known[match[0]], line)


def run(test, build):
    """The first errors of all rejections of a test, and whether numbers show them."""
    found = []
    path = f"{build}/bin:/usr/lib/llvm-19/bin:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        for line in read_runs(test):
            rejection = REJECTION.match(line)
            # What is accepted makes no files for other lines.
            if not rejection and re.match("(not )?zero-prove ", line):
                continue
            command = rejection[1] if rejection else line
            command = expand(command, test, pathlib.Path(folder) / "t")
            done = subprocess.run(
                ["bash", "-c", command],
                capture_output=True,
                text=True,
                env={**os.environ, "PATH": path},
            )
            if not rejection:
                continue
            error = re.search("error: (.*)", done.stderr)
            if done.returncode == 0 or not error or BROKEN.search(error[1]):
                sys.exit(f"{test}: is not rejected: {command}\n{done.stderr}")
            found.append((test.name, error[1], "counterexample: " in done.stderr))
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", required=True)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--least", type=float, default=0, help="percent")
    options = parser.parse_args()
    tests = sorted(path for folder in FOLDERS for path in folder.glob("*.test"))
    build = os.path.abspath(options.build)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = sum(pool.map(lambda test: run(test, build), tests), [])
    numbers = [one for one in found if one[2] or NUMBER.match(one[1])]
    shown = sum(has for _, _, has in numbers)
    if options.list:
        for name, error, has in numbers:
            if not has:
                print(f"{name}: {error}")
    share = 100 * shown / len(numbers)
    print(
        f"{shown} of {len(numbers)} rejections about numbers have a counterexample, "
        f"{share:.1f} %; {len(found) - len(numbers)} are about something else"
    )
    return share < options.least


if __name__ == "__main__":
    sys.exit(main())
