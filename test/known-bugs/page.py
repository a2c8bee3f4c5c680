#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists the cases of this folder in README.md.

  page.py           writes the list
  page.py --check   fails if README.md is not up to date
"""

import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
FIELDS = ["System", "Class", "Mistake", "Result", "Rejected by"]
MARK = "<!-- The rest is written by page.py. -->\n"


def read(path):
    """The fields at the top of a case. Indented lines continue a field."""
    case = {}
    field = None
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        start = re.match(rf"# ({'|'.join(FIELDS)}): (.*)", line)
        if start:
            field = start[1]
            case[field] = start[2]
        elif field and line.startswith("#   "):
            case[field] += " " + line[4:]
        else:
            field = None
    missing = [field for field in FIELDS if field not in case]
    if missing:
        sys.exit(f"{path.name} does not say: {', '.join(missing)}")
    return case


def main():
    cases = [
        (path, read(path))
        for path in sorted(FOLDER.glob("*.test"))
        if "# System:" in path.read_text()
    ]
    cases.sort(key=lambda entry: entry[1]["Class"])
    by = [case["Rejected by"] for _, case in cases]
    lines = [
        f"\n{len(cases)} cases, all of them rejected: "
        f"{by.count('verifier')} by a type or a verifier, "
        f"{by.count('proof')} by the proof.\n\n",
        "| system | class | what went wrong | the wrong result | rejected by |\n",
        "|---|---|---|---|---|\n",
    ]
    for path, case in cases:
        row = [case[field] for field in FIELDS]
        row[0] = f"[{row[0]}]({path.name})"
        lines.append("| " + " | ".join(row) + " |\n")
    page = FOLDER / "README.md"
    head, _, old = page.read_text().partition(MARK)
    new = "".join(lines)
    if "--check" in sys.argv[1:]:
        if old != new:
            sys.exit("README.md is not up to date: run page.py")
        return
    page.write_text(head + MARK + new)


if __name__ == "__main__":
    main()
