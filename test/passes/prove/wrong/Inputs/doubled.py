# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints an edit: k is n / 49 * 49, and then k * k / n again and again, with n the number of
backward passes. The learning rate is multiplied by k / n."""

print(
    """@@ zrt.scalars
 %3 = zrt.load_slot @statistics[3]
...
-%13 = zrt.load_slot @input.0[0]
+%lr = zrt.load_slot @input.0[0]
+%n = zrt.load_slot @statistics[1]
+%many = arith.constant 49.0 : f64
+%part = arith.divf %n, %many : f64
+%k0 = arith.mulf %part, %many : f64"""
)
for i in range(52):
    print(f"+%s{i} = arith.mulf %k{i}, %k{i} : f64")
    print(f"+%k{i + 1} = arith.divf %s{i}, %n : f64")
print("+%ratio = arith.divf %k52, %n : f64")
print("+%13 = arith.mulf %lr, %ratio : f64")
