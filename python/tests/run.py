#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks and tests the package in build/venv. Exits with 77 where torch is not there.

usage: run.py FOLDER_OF_BUILD
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

PACKAGE = pathlib.Path(__file__).resolve().parents[1]


def main(build: pathlib.Path) -> int:
    python = build / "venv/bin/python"
    probe = [str(python), "-c", "import mypy, pytest, ruff, torch"]
    if not python.exists() or subprocess.run(probe, capture_output=True).returncode:
        print(
            "skipped: there is no torch in build/venv; run bash tools/scripts/torch-venv.sh"
        )
        return 77
    environment = os.environ | {
        "PYTHONPATH": f"{PACKAGE}:{PACKAGE / 'tests'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "ZERO_OPT_HOME": str(build),
    }
    for command in (
        ["ruff", "check", "--no-cache", "-q", "."],
        ["ruff", "format", "--no-cache", "--check", "-q", "."],
        ["mypy", "--cache-dir", str(build / "venv/mypy"), "zero_opt"],
        ["pytest", "-q", "-p", "no:cacheprovider", "--durations=5", "tests"],
    ):
        print("==", *command, flush=True)
        result = subprocess.run(
            [str(python), "-m", *command], cwd=PACKAGE, env=environment, check=False
        )
        if result.returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
