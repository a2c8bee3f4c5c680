# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the compiler and the runtime: in a build folder, or where they are installed."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pathlib
import shutil

from zero_opt.errors import ZeroOptError

# Where CMake installs libraries depends on the prefix.
_FOLDERS = ("lib", "lib/x86_64-linux-gnu")


def _list_homes() -> list[pathlib.Path]:
    """The folders that may have lib. A wrong ZERO_OPT_HOME is no reason to take
    another folder."""
    if home := os.environ.get("ZERO_OPT_HOME"):
        return [pathlib.Path(home)]
    package = pathlib.Path(__file__).resolve().parent
    homes = [package, package.parents[1] / "build"]  # a wheel, a clone
    if program := shutil.which("zero-compile"):
        homes.append(pathlib.Path(program).resolve().parents[1])
    return homes


def _find(what: str, name: str) -> pathlib.Path:
    homes = _list_homes()
    for home in homes:
        for folder in _FOLDERS:
            if (home / folder / name).is_file():
                return home / folder / name
    raise ZeroOptError(
        f"{what} lib/{name} was not found in {' or '.join(str(home) for home in homes)}; "
        "build it, or set ZERO_OPT_HOME to a build folder or to an installed prefix"
    )


def find_compiler() -> pathlib.Path:
    return _find("the compiler", "libzero_compiler.so")


def find_runtime() -> pathlib.Path:
    return _find("the runtime", "libzero_rt.so")


def load_from_wheel(*names: str) -> None:
    """Loads the first of |names| that a wheel of NVIDIA has, so that the runtime finds it
    by its name. It does nothing where no wheel has one: the system may."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    for name in names:
        for folder in folders:
            for path in pathlib.Path(folder).glob(f"*/lib/{name}"):
                with contextlib.suppress(OSError):  # the runtime says what is missing
                    ctypes.CDLL(str(path))
                    return
