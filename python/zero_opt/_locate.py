# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the compiler and the runtime: in a build folder, or where they are installed."""

from __future__ import annotations

import os
import pathlib
import shutil

from zero_opt.errors import ZeroOptError

COMPILER = "bin/zero-compile"
# Where CMake installs libraries depends on the prefix.
RUNTIMES = ("lib/libzero_rt.so", "lib/x86_64-linux-gnu/libzero_rt.so")


def _list_homes() -> list[pathlib.Path]:
    """The folders that may have bin and lib. A wrong ZERO_OPT_HOME is no reason to take
    another folder."""
    if home := os.environ.get("ZERO_OPT_HOME"):
        return [pathlib.Path(home)]
    homes = [pathlib.Path(__file__).resolve().parents[2] / "build"]
    if program := shutil.which("zero-compile"):
        homes.append(pathlib.Path(program).resolve().parents[1])
    return homes


def _find(what: str, names: tuple[str, ...]) -> pathlib.Path:
    homes = _list_homes()
    for home in homes:
        for name in names:
            if (home / name).is_file():
                return home / name
    raise ZeroOptError(
        f"{what} was not found in {' or '.join(str(home) for home in homes)}; build it, "
        "or set ZERO_OPT_HOME to a build folder or to an installed prefix"
    )


def find_compiler() -> pathlib.Path:
    return _find("the compiler bin/zero-compile", (COMPILER,))


def find_runtime() -> pathlib.Path:
    return _find("the runtime lib/libzero_rt.so", RUNTIMES)
