#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks test/bad_input.md.

Every row names an existing test. The answer of the row occurs in that test: in the
file, or in the body of the GoogleTest.
"""

import pathlib
import re
import sys

AT_LEAST = 25


def find(root, name):
    """The text of the test |name|, or None."""
    if "/" in name:
        path = root / "test" / name
        return path.read_text() if path.is_file() else None
    suite, test = name.split(".")
    for path in sorted(root.glob("test/unit/**/*.cpp")):
        for body in re.split(r"^(?=TEST)", path.read_text(), flags=re.M):
            if re.match(rf"TEST\w*\({suite}, {test}\)", body):
                # A literal may be cut into lines.
                return re.sub(r'"\s*\n\s*"', "", body)
    return None


def problems(root):
    page = (root / "test" / "bad_input.md").read_text()
    rows = re.findall(r"^\| (.+?) \| `(.+)` \| `(\S+)` \|$", page, re.M)
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    heads = sum(line == "| bad input | answer | test |" for line in lines)
    if len(rows) != len(lines) - heads:
        yield f"{len(lines) - heads - len(rows)} rows are not '| input | `answer` | `test` |'"
    if len(rows) < AT_LEAST:
        yield f"{len(rows)} rows, expected at least {AT_LEAST}"
    for what, answer, name in rows:
        text = find(root, name)
        if text is None:
            yield f"{what}: there is no test {name}"
            continue
        for part in filter(None, map(str.strip, answer.split("…"))):
            if part not in text:
                yield f"{what}: {name} does not say '{part}'"


def main():
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
