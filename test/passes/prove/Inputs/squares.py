# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""known-bugs' step with an update of squares in squares.

squares.py STEP quotients|selections COUNT
"""

import sys
from pathlib import Path

STEPS = {
    "quotients": """\
  %a{i} = arith.addf %y{i}, %p : f32
  %b{i} = arith.divf %a{i}, %g : f32
  %c{i} = arith.addf %b{i}, %m : f32
""",
    "selections": """\
  %is{i} = arith.cmpf ogt, %y{i}, %zero : f32
  %a{i} = arith.addf %y{i}, %p : f32
  %b{i} = arith.subf %y{i}, %g : f32
  %c{i} = arith.select %is{i}, %a{i}, %b{i} : f32
""",
}


def main() -> None:
    step, kind, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    body = "  %zero = arith.constant 0.0 : f32\n  %y0 = arith.divf %m1, %d : f32\n"
    for i in range(count):
        body += STEPS[kind].format(i=i)
        body += f"  %y{i + 1} = arith.mulf %c{i}, %c{i} : f32\n"
    body += f"  %q = arith.addf %y{count}, %zero : f32\n"
    text = Path(step).read_text()
    known = "  %q = arith.divf %m1, %d : f32\n"
    assert known in text
    print(text.replace(known, body), end="")


main()
