# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts compiler and runtime into the package, with the licences of what is in them.

Both were built before: their build needs LLVM and minutes. An editable installation looks
for them when it is used.
"""

from __future__ import annotations

import atexit
import os
import pathlib
import platform
import shutil
import sys
import tempfile

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBRARIES = ("libzero_compiler.so", "libzero_rt.so")
# Where Debian has the licences of what is linked into the libraries.
PARTS = {
    "LLVM and MLIR": "llvm-19-dev",
    "libstdc++ and libgcc": "gcc-12-base",
    "xxHash": "libxxhash-dev",
    "nlohmann_json": "nlohmann-json3-dev",
}


def find_libraries() -> list[pathlib.Path]:
    home = pathlib.Path(os.environ.get("ZERO_OPT_HOME") or ROOT / "build")
    folders = (home / "lib", home / "lib/x86_64-linux-gnu")
    for folder in folders:
        libraries = [folder / name for name in LIBRARIES]
        if all(library.is_file() for library in libraries):
            return libraries
    sys.exit(
        f"zero-opt: {' and '.join(LIBRARIES)} were not found in {folders[0]}; run "
        "'bash tools/scripts/build.sh build -- zero_compiler zero_rt' in the clone, or set "
        "ZERO_OPT_HOME to a build folder or to an installed prefix"
    )


def collect_licences() -> str:
    texts = [("zero-opt", ROOT / "LICENSE")]
    for part, package in PARTS.items():
        texts.append((part, pathlib.Path("/usr/share/doc", package, "copyright")))
    missing = [str(path) for _, path in texts if not path.is_file()]
    if missing:
        sys.exit(f"zero-opt: {missing[0]} was not found, which has a licence of the wheel")
    return "\n".join(f"==== {part} ====\n\n{path.read_text()}" for part, path in texts)


class BuildWithLibraries(build_py):
    def run(self) -> None:
        if self.editable_mode:
            return super().run()
        libraries, licences = find_libraries(), collect_licences()
        super().run()
        package = pathlib.Path(self.build_lib, "zero_opt")
        (package / "lib").mkdir()
        for library in libraries:
            shutil.copy(library, package / "lib")
        (package / "LICENSES").write_text(licences)


class PlatformDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


class PlatformWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        """For any Python. The libraries may use all of this machine's C library."""
        minor = platform.libc_ver()[1].split(".")[1]
        return "py3", "none", f"manylinux_2_{minor}_{platform.machine()}"


# What a build left that was interrupted, or that had other files, must not come in.
build = tempfile.TemporaryDirectory()
atexit.register(build.cleanup)
setup(
    distclass=PlatformDistribution,
    cmdclass={"build_py": BuildWithLibraries, "bdist_wheel": PlatformWheel},
    options={"build": {"build_base": build.name}},
)
