# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damages a compiled library and opens it: damage_library.py CLIENT LIBRARY FOLDER

Each of 400 flipped bits and each of 60 truncated files must be an error. The files are
opened in one process, which must not crash.
"""

import pathlib
import random
import subprocess
import sys

FLIPS, CUTS = 400, 60

client, library, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
content = library.read_bytes()
draw = random.Random(5)
variants = []
for _ in range(FLIPS):
    damaged = bytearray(content)
    # The last struct has 4 reserved bytes, from 20 before the end on.
    place = draw.choice([*range(len(content) - 20), *range(len(content) - 16, len(content))])
    damaged[place] ^= 1 << draw.randrange(8)
    variants.append(bytes(damaged))
variants += [content[: draw.randrange(len(content))] for _ in range(CUTS)]
paths = []
for i, variant in enumerate(variants):
    paths.append(folder / f"damaged{i}.so")
    paths[-1].write_bytes(variant)
output = subprocess.run(
    [client, "--check", *paths], capture_output=True, text=True, check=True
).stdout
lines = output.splitlines()
for path in paths:
    path.unlink()
errors = [line for line in lines if line != "opened"]
print(f"{len(lines)} files, {len(errors)} errors")
