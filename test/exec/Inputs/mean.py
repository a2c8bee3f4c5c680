# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the mean of the losses in each line of some files, as char_model does.

  mean.py FILE...
"""

import pathlib
import sys

losses = [list(map(float, pathlib.Path(name).read_text().split())) for name in sys.argv[1:]]
for step in zip(*losses, strict=True):
    print(f"{sum(loss / len(step) for loss in step):.17g}")
