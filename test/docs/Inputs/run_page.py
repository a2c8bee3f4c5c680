#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the commands of a page and compares what they print with the page.

  run_page.py PAGE SOURCE BUILD FOLDER

In a block ```console a line that begins with '$ ' is a command. It runs in FOLDER,
where build, examples and the other folders of SOURCE are as in a checkout. The lines
below it must occur in its output, in this order, with any number of blanks; '...'
stands for lines left out, or for the rest of a line. A command fails where, and only
where, a line below it begins with a diagnostic.
"""

import pathlib
import re
import subprocess
import sys


def blocks(page):
    """Commands and the output that the page shows."""
    for block in re.findall(r"^```console\n(.*?)^```", page, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            # A line that ends in a backslash goes on.
            command, _, shown = part.replace("\\\n", " ").partition("\n")
            yield command, [line for line in shown.splitlines() if line.strip()]


def words(line):
    return " ".join(line.split())


def missing(shown, printed):
    """The first line of |shown| that |printed| lacks after the ones before it."""
    rest = iter(words(line) for line in printed.splitlines())
    for line in shown:
        wanted = words(line)
        if wanted == "...":
            continue
        if wanted.endswith("..."):
            found = any(one.startswith(wanted[:-3]) for one in rest)
        else:
            found = any(one == wanted for one in rest)
        if not found:
            return line
    return None


def main():
    page, source, build, folder = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True)
    for entry in source.iterdir():
        if not entry.name.startswith(".") and entry.name != "build":
            (folder / entry.name).symlink_to(entry)
    (folder / "build").symlink_to(build)
    count = failed = 0
    for command, shown in blocks(page.read_text()):
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        count += 1
        fails = any(re.search(r"\berror: ", line) for line in shown)
        lacks = missing(shown, done.stdout)
        if lacks is None and fails == (done.returncode != 0):
            continue
        failed += 1
        why = f"exit code {done.returncode}" if lacks is None else f"lacks: {lacks}"
        print(f"$ {command}\n{why}, and prints\n{done.stdout}")
    print(f"{count} commands, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
