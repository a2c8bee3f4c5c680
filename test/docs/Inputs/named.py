#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the tests of a README's table, and the files that pages link to, exist.

  named.py SOURCE PAGE...

In a row of four columns or more the last one names tests: a file or folder below test/,
with or without .cpp, where a name without a folder is in the folder of the name before
it; behind 'ctest', names of CTest.
"""

import pathlib
import re
import sys


def tests_of(row, source):
    """Names in the last column that are no test."""
    ctests = re.findall(r"NAME ([\w-]+)", (source / "test/CMakeLists.txt").read_text())
    for part in row.split("|")[-2].split(";"):
        folder = pathlib.Path()
        for name in re.findall(r"`([^`]+)`", part):
            if part.strip().startswith("ctest"):
                if name not in ctests:
                    yield name
                continue
            if "/" in name:
                folder = pathlib.Path(name).parent
                name = pathlib.Path(name).name
            file = source / "test" / folder / name
            if not file.exists() and not file.with_name(name + ".cpp").exists():
                yield name


def main():
    source, *pages = map(pathlib.Path, sys.argv[1:])
    rows = wrong = 0
    for page in pages:
        text = page.read_text()
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            if not (page.parent / target).exists():
                wrong += 1
                print(f"{page.name}: there is no {target}")
        for row in text.splitlines():
            if row.startswith("| ") and row.count("|") > 4:
                rows += 1
                for name in tests_of(row, source):
                    wrong += 1
                    print(f"{page.name}: there is no test {name}")
    print(f"{rows} rows, {wrong} wrong names")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
