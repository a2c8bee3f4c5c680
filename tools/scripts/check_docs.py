#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the documentation and the tests of the op definitions.

Every op has a summary and an example. Every op in an example occurs in a test.
Every constraint has a name, a comment with that name where it is checked, and a
test with that name.
"""

import pathlib
import re
import sys


def read(paths):
    return "".join(path.read_text() for path in sorted(paths))


def problems(root):
    tests = read([*root.glob("test/**/*.mlir"), *root.glob("test/**/*.test")])
    code = read([*root.glob("dialect/**/*.cpp"), *root.glob("dialect/**/*.h")])
    used = set(re.findall(r"\b(?:zero|zrt)\.[a-z_]+", tests))
    for path in sorted(root.glob("dialect/z*/*.td")):
        text = path.read_text()
        for match in re.finditer(r"^def (Z\w+Op) :(.*?)^}", text, re.M | re.S):
            name, body = match.groups()
            if "let summary" not in body and "Op<" in body:
                yield f"{path.name}: {name} has no summary"
            if not re.search(r"\bExample:", body):
                yield f"{path.name}: {name} has no example"
            for example in re.findall(r"```mlir(.*?)```", body, re.S):
                for op in re.findall(r"\b(?:zero|zrt)\.[a-z_]+", example):
                    if op not in used:
                        yield f"{path.name}: {name}: {op} is in no test"
        for rule in sorted(set(re.findall(r"`([a-z_]+_c\d+)`", text))):
            if not re.search(rf"\b{rule}\b", code):
                yield f"{path.name}: {rule} is named nowhere in the code"
            if not re.search(rf"\b{rule}\b", tests):
                yield f"{path.name}: {rule} has no test"


def main():
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
