#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the commands of tools in "Using it" of the README.

    readme.py README SOURCE BUILD FOLDER

FOLDER is where they run, as if it were a clone in which BUILD is `build`. A script in the
list builds or trains, and is run elsewhere.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys


def main():
    readme, source, build, folder = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for name, target in [("build", build), ("examples", source / "examples")]:
        (folder / name).unlink(missing_ok=True)
        os.symlink(target, folder / name)
    text = readme.read_text()
    block = re.search(r"^## Using it\n+```sh\n(.*?)^```", text, re.M | re.S).group(1)
    failed = 0
    commands = [line for line in block.splitlines() if line.startswith("build/bin/")]
    for command in commands:
        run = subprocess.run(shlex.split(command), cwd=folder, capture_output=True, text=True)
        if run.returncode:
            failed += 1
            print(f"{command}\n  exits with {run.returncode}: {run.stderr.strip()}")
    print(f"{len(commands)} commands, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
