#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damages the only file of a cache in many ways, and compiles its step again.

usage: damage_cache.py CACHE STEP FOLDER
"""

import json
import pathlib
import subprocess
import sys

cache, step, folder = sys.argv[1:]
(entry,) = pathlib.Path(cache).iterdir()
whole = entry.read_bytes()
damaged = [b"", whole[:1], whole[:-1], whole + b"x", whole[64:], b"x" * 64, whole[::-1]]
for at in range(0, len(whole), len(whole) // 9):
    damaged.append(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
found = 0
for content in damaged:
    entry.write_bytes(content)
    command = ["zero-compile", step, f"--cache={cache}", "-o", folder, "--json"]
    done = subprocess.run(command, capture_output=True, check=True)
    found += json.loads(done.stdout)["cached"]
    if entry.read_bytes() != whole:
        print("the entry is not that of before")
print(f"{len(damaged)} damaged, {found} found")
