#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edits lowered IR by patterns, to make a program wrong in one way.

  edit.py BASE TEST [-o OUT]   applies the edits in TEST to the IR in BASE
  edit.py --check TEST...      lists the tests with edits that no longer apply

A test calls it %edit, and has its edits below its comments:

  # RUN: %edit %S/Inputs/stage1.mlir %s -o %t.mlir
  @@ zrt.handler @finish
  +zrt.run_scalars $outcome
   zrt.all_reduce_scalars @statistics over [dp]
  -zrt.run_scalars $outcome

'@@ OP' begins an edit of the region of one operation. The line of that operation begins
with OP, such as 'zrt.handler @finish' or 'zrt.program'. '@@' alone edits the whole
file. If several operations begin with OP, the edit must match in one of them.
'@@ copy OP as @NAME' inserts a copy of an operation, with the name NAME, behind the
operation. If several operations begin with OP, the lines below select one.

A line that begins with a space must exist. A line with '-' is removed. A line with '+'
is added at its place. Consecutive lines match consecutive lines. A line '...' allows
other lines in between. An edit with only '+' lines adds at the end of the region. A
line with '#' is a comment. Indentation does not count.

  %name   one SSA value with any number. The same name is the same value in all lines
          of an edit, and another name is another value. A name that only '+' lines
          define is a new value; edit.py renames it if the IR has that name.
  $name   any text within a line, which other lines of the edit may repeat
  ...     any text within a line

Each edit must match exactly once and change something. Otherwise edit.py fails, and
prints the nearest lines, or the places that match. So copy lines of the IR, remove the
parts that do not matter, and add lines that identify the place: the line that defines a
value or names a symbol identifies it best.
"""

from __future__ import annotations

import argparse
import os
import re
import sys

from edits import EditError, edited

RUN = re.compile(r"^(?:#|//) *RUN:.*%edit +([^-\s]\S*) +%s\b", re.M)


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def check(paths: list[str]) -> int:
    """How many tests have edits that do not apply to the file in their RUN line."""
    failed = made = 0
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for path in paths:
        text = read(path)
        for base in RUN.findall(text):
            base = base.replace("%S", os.path.dirname(path))
            base = base.replace("%zero_src", source)
            if "%t" in base:
                made += 1
                continue
            try:
                edited(read(base), text)
            except EditError as error:
                failed += 1
                print(f"{path}:{error}\n")
    print(f"{failed} tests have edits that do not apply", end="")
    print(f"; {made} tests edit what they make themselves: run them" if made else "")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-o", metavar="OUT", help="file for the IR (default: stdout)")
    parser.add_argument("--check", action="store_true", help="try each FILE")
    arguments = parser.parse_args()
    if arguments.check:
        return 1 if check(arguments.files) else 0
    if len(arguments.files) != 2:
        parser.error("two files are needed: BASE and TEST")
    base, test = arguments.files
    try:
        new = edited(read(base), read(test))
    except EditError as error:
        print(f"{test}:{error}", file=sys.stderr)
        print(f"edit.py: {base} is as it was", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"edit.py: error: {error}", file=sys.stderr)
        return 1
    if not arguments.o:
        sys.stdout.write(new)
        return 0
    with open(arguments.o, "w", encoding="utf-8") as file:
        file.write(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
