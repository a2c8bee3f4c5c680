#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the files that name each call that handlers make.

usage: call_files.py [--table] FOLDER

A call of handlers costs a file for each question that only the call itself answers:

- its op: ProgramOps.td or ScheduleOps.td;
- its rules, and the description of its arguments: ProgramOps.cpp;
- its meaning in the interpreter: interpret/ProgramCalls.cpp;
- its meaning in the proof: prove/Calls.cpp;
- its prototype: calls.def;
- its code in the runtime.

Everything else follows from the description. Therefore a call is named in at most six
files of dialect/, passes/prove, codegen/, runtime/ and tools/.

A file names a call if its code names the class of the op, or the function of the
runtime. Comments do not count. Other passes are not counted: they choose a call, and a
call that no pass makes yet is in none of them.

The calls of MORE are more than steps of a handler. Some rules are about one of them
only: gradients arrive by packs, and records and waits order streams. Their bounds are
the present numbers.
"""

import pathlib
import re
import sys

MOST = 6
MORE = {
    "pack": 12,
    "fill_missing": 9,
    "launch": 10,
    "record": 11,
    "wait": 11,
    "wait_writable": 9,
}

FOLDERS = ["dialect", "passes/prove", "codegen", "runtime", "tools"]
SUFFIXES = {".cpp", ".h", ".td", ".def"}
COMMENT = re.compile(r"//[^\n]*")
CALL = re.compile(r"^ZERO_RT_PROGRAM_CALL\((\w+),", re.MULTILINE)


def read_code(root):
    """The code without comments of each file, by its path in |root|."""
    return {
        path.relative_to(root).as_posix(): COMMENT.sub("", path.read_text())
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in SUFFIXES
    }


def find_files(call, code):
    name = "".join(word.capitalize() for word in call.split("_")) + "Op"
    # The zero dialect has ops of the same names.
    in_dialect = re.compile(rf"\b(Zrt_)?{name}\b")
    elsewhere = re.compile(
        rf"\bzrt::{name}\b|\bcalls::{call}\b|_CALL\({call},|\bCall::{call}\b"
    )
    return [
        path
        for path, text in code.items()
        if (in_dialect if path.startswith("dialect/zrt/") else elsewhere).search(text)
    ]


def main(arguments):
    has_table = "--table" in arguments
    root = pathlib.Path([a for a in arguments if a != "--table"][0])
    code = read_code(root)
    failed = False
    for call in CALL.findall(code["runtime/include/zero_rt/calls.def"]):
        files = find_files(call, code)
        most = MORE.get(call, MOST)
        if has_table:
            print(f"{len(files):2} {call}: {' '.join(files)}")
        if len(files) > most:
            failed = True
            print(
                f"{call} is named in {len(files)} files, at most {most}: "
                f"{', '.join(files)}",
                file=sys.stderr,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
