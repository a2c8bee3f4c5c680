#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints each op of a program and the source ops that it comes from.

locations.py reads what zero-opt --mlir-print-debuginfo prints.
"""

import re
import sys

text = sys.stdin.read()
aliases = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.M))
sources = {}


def find_lines(location):
    """The (file, line) pairs of a location, which may be fused."""
    for alias in re.findall(r"#loc\d*", location):
        yield from find_lines(aliases[alias])
    for file, line in re.findall(r'"([^"]+)":(\d+):\d+', location):
        yield file, int(line)


def find_op(file, line):
    """The op that |line| of |file| spells."""
    if file not in sources:
        sources[file] = open(file).read().split("\n")
    found = re.search(r"\w+\.\w+", sources[file][line - 1])
    return found.group(0) if found else f"line {line}"


is_program = False
for line in text.split("\n"):
    is_program |= line.lstrip().startswith("zrt.program")
    found = re.match(r"\s*(?:%\S+ = )?(zrt\.\w+ .*?|zrt\.\w+) loc\((#loc\d*)\)$", line)
    if is_program and found:
        places = dict.fromkeys(find_op(*at) for at in find_lines(aliases[found.group(2)]))
        print(found.group(1), "<-", " ".join(places))
