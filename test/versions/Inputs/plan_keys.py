# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plan_keys.py PLAN...: the keys of the plans and the types of their values, a line each.
`a[].b` is the key b of each element of the list a."""

import json
import sys


def walk(value, path, lines):
    if isinstance(value, dict):
        for key, item in value.items():
            walk(item, f"{path}.{key}" if path else key, lines)
    elif isinstance(value, list):
        lines.add(f"{path}: list")
        for item in value:
            walk(item, f"{path}[]", lines)
    else:
        lines.add(f"{path}: {type(value).__name__}")


def main():
    lines = set()
    for name in sys.argv[1:]:
        with open(name) as file:
            walk(json.load(file), "", lines)
    print("\n".join(sorted(lines)))


main()
