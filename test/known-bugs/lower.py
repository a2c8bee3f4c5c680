#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowers the steps in Inputs/ anew. The head of each file has its lowering options.

  lower.py [--bin build/bin]    writes the files, and lists the tests whose edits no
                                longer apply to them (edit.py)
  lower.py --check              fails if the compiler lowers a step differently
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shlex
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
HEAD = re.compile(r"(?://.*\n)+\n*")
LOWERS = re.compile(r"(\S+) as the compiler lowers it: (.*)\.$")


def lowered(path: pathlib.Path, tools: pathlib.Path) -> str | None:
    """What a file should hold; None if its head does not say that."""
    head = HEAD.match(path.read_text())
    says = head and LOWERS.search(" ".join(head[0].replace("//", " ").split()))
    if not head or not says:
        return None
    folders = (FOLDER / "Inputs", FOLDER, ROOT)
    step = next(folder / says[1] for folder in folders if (folder / says[1]).exists())
    command = [str(tools / "zero-opt"), str(step), *shlex.split(says[2])]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return head[0].rstrip("\n") + "\n\n" + done.stdout.lstrip("\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    changed = []
    for path in sorted((FOLDER / "Inputs").glob("*.mlir")):
        new = lowered(path, arguments.bin)
        if new is not None and new != path.read_text():
            changed.append(path)
            if not arguments.check:
                path.write_text(new)
    names = ", ".join(path.name for path in changed)
    if arguments.check:
        if changed:
            print(f"the compiler lowers these otherwise: {names}; run lower.py")
        return 1 if changed else 0
    print(f"written: {names}" if changed else "nothing changed")
    tests = [
        str(path)
        for path in (ROOT / "test").rglob("*.test")
        if "RUN: %edit" in path.read_text()
    ]
    return subprocess.run(
        [sys.executable, str(ROOT / "test/edit.py"), "--check", *tests]
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
