# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds three levels of sums of 20 selections to the scalar program that loads an input."""

import sys

LEVELS, CHOICES = 3, 20
for line in sys.stdin:
    print(line, end="")
    if "zrt.load_slot @input.0[0]" not in line:
        continue
    value = line.split()[0]
    for level in range(LEVELS):
        name = f"%l{level}"
        for i in range(CHOICES):
            print(f"{name}c{i} = arith.constant {level + i + 2}.0 : f64")
            print(f"{name}p{i} = arith.cmpf ogt, {value}, {name}c{i} : f64")
            print(f"{name}s{i} = arith.select {name}p{i}, {value}, {name}c{i} : f64")
        print(f"{name}a0 = arith.addf {name}s0, {name}s1 : f64")
        for i in range(2, CHOICES):
            print(f"{name}a{i - 1} = arith.addf {name}a{i - 2}, {name}s{i} : f64")
        value = f"{name}a{CHOICES - 2}"
