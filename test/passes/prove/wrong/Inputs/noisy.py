# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces an operand x in one line of a program by a number that is x over the reals.

  noisy.py PROGRAM OPERAND LINE --rounds N [--added] [--wide]

LINE is a regular expression of the line. The number is x / 41 * 41, and then N times
1.875 times itself less 0.875 x. With --added, it is the sum of N numbers x, divided by N.
With --wide, it is computed in f64, and x / 41 alone is rounded to f32.
"""

import argparse
import pathlib
import re

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("operand")
parser.add_argument("line")
parser.add_argument("--rounds", type=int, required=True)
parser.add_argument("--added", action="store_true")
parser.add_argument("--wide", action="store_true")
options = parser.parse_args()

x = options.operand
lines = pathlib.Path(options.program).read_text().split("\n")
(index,) = [i for i, line in enumerate(lines) if re.search(options.line, line)]
kind = re.search(r"(f32|f64)$", lines[index])[1]
if options.added:
    made = [f"%n = arith.constant {options.rounds}.0 : {kind}"]
    last = x
    for i in range(options.rounds - 1):
        made.append(f"%s{i} = arith.addf {last}, {x} : {kind}")
        last = f"%s{i}"
    made.append(f"%made = arith.divf {last}, %n : {kind}")
    last = "%made"
else:
    made = [
        f"%many = arith.constant 41.0 : {kind}",
        f"%more = arith.constant 1.875 : {kind}",
        f"%less = arith.constant 0.875 : {kind}",
        f"%part = arith.divf {x}, %many : {kind}",
        f"%noisy0 = arith.mulf %part, %many : {kind}",
        f"%rest = arith.mulf {x}, %less : {kind}",
    ]
    if options.wide:
        made = [
            line.replace("f32", "f64").replace(f" {x}, ", " %wide, ") for line in made
        ]
        kind = "f64"
        made.insert(0, f"%wide = arith.extf {x} : f32 to f64")
        made[made.index("%noisy0 = arith.mulf %part, %many : f64")] = (
            "%narrow = arith.truncf %part : f64 to f32\n%again = arith.extf %narrow : f32 to f64\n"
            "%noisy0 = arith.mulf %again, %many : f64"
        )
    for i in range(options.rounds):
        made.append(f"%product{i} = arith.mulf %noisy{i}, %more : {kind}")
        made.append(f"%noisy{i + 1} = arith.subf %product{i}, %rest : {kind}")
    last = f"%noisy{options.rounds}"
    if options.wide:
        made.append(f"%made = arith.truncf {last} : f64 to f32")
        last = "%made"
lines[index:index] = made
lines[index + len(made)] = re.sub(rf"{x}\b", last, lines[index + len(made)])
print("\n".join(lines))
