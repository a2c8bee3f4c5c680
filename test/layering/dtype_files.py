#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the files that name each element type of memory.

usage: dtype_files.py [--table] FOLDER

An element type costs a file for each question that only the type itself answers:

- its names, and the bits of its numbers: StorageTypes.def;
- its number in the ABI: abi.h, and its size: dtypes.def;
- its arithmetic in the runtime: numeric.h;
- its lowering, where targets have no instructions for it: kernels/Body.cpp.

Everything else follows. Therefore a type is named in at most six files of dialect/,
passes/, codegen/, runtime/ and tools/. f32 and f64 are not counted: sums, norms and
scalars have these types by definition.

A file names a type if its code does. Comments, descriptions of ops and benchmarks do not
count.
"""

import pathlib
import re
import sys

MOST = 6
FOLDERS = ["dialect", "passes", "codegen", "runtime", "tools"]
SUFFIXES = {".cpp", ".h", ".def"}
COMMENT = re.compile(r"//[^\n]*")
TYPE = re.compile(r'^ZERO_STORAGE_TYPE\((\w+), "(\w+)"', re.MULTILINE)
WIDE = {"f32", "f64"}


def read_code(root):
    """The code without comments of each file, by its path in |root|."""
    return {
        path.relative_to(root).as_posix(): COMMENT.sub("", path.read_text())
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in SUFFIXES and "zero-bench" not in path.parts
    }


def main(arguments):
    has_table = "--table" in arguments
    root = pathlib.Path([a for a in arguments if a != "--table"][0])
    code = read_code(root)
    types = TYPE.findall(code["dialect/zero/StorageTypes.def"])
    failed = not types
    for type_class, name in types:
        if name in WIDE:
            continue
        pattern = re.compile(
            rf"(?i:\b(is|get|zero_rt_)?{name}(type)?\b)|{name.upper()}|\b{type_class}\b"
        )
        files = [path for path, text in code.items() if pattern.search(text)]
        if has_table:
            print(f"{len(files):2} {name}: {' '.join(files)}")
        if len(files) > MOST:
            failed = True
            print(
                f"{name} is named in {len(files)} files, at most {MOST}: {', '.join(files)}",
                file=sys.stderr,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
