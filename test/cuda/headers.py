#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the runtime's tables of CUDA and NCCL with the real headers.

headers.py [--cxx g++] [--include FOLDER]... [--library FILE]...

The script compiles headers.cpp with cuda.h and nccl.h of the folders (default:
$CUDA_HOME or /usr/local/cuda), and looks for the functions in the libraries (default:
the driver stub of the toolkit, and its NCCL). The exit code is 77 without
cuda.h.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CUDA = ROOT / "runtime" / "device" / "cuda"
HOME = pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")


def find_libraries() -> list[pathlib.Path]:
    """The first stub of the driver, and the first NCCL."""
    found = []
    for names in (["stubs/libcuda.so"], ["libnccl.so.2", "libnccl.so"]):
        paths = [HOME / folder / name for name in names for folder in ("lib64", "lib")]
        found += [path for path in paths if path.exists()][:1]
    return found


def find_forgotten(program: pathlib.Path) -> list[str]:
    """Our constants that |program| does not compare."""
    ours = [name for header in ("driver.h", "nccl.h")
            for name in re.findall(r"^constexpr \w+ (\w+) =",
                                   (CUDA / header).read_text(), re.MULTILINE)]
    assert ours, "no constants in the headers of the runtime"
    compared = re.findall(r"VALUE\((\w+),", program.read_text())
    return sorted(set(ours) - set(compared))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cxx", default=os.environ.get("CXX", "c++"))
    parser.add_argument("--include", type=pathlib.Path, action="append")
    parser.add_argument("--library", type=pathlib.Path, action="append")
    options = parser.parse_args()
    includes: list[pathlib.Path] = options.include or [HOME / "include"]
    libraries: list[pathlib.Path] = options.library or find_libraries()

    program = pathlib.Path(__file__).with_suffix(".cpp")
    forgotten = find_forgotten(program)
    if forgotten:
        print(f"{program.name} does not compare {', '.join(forgotten)}")
        return 1
    if not any((folder / "cuda.h").exists() for folder in includes):
        print(f"skipped: there is no cuda.h in {', '.join(map(str, includes))}; it comes "
              "with the CUDA toolkit")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        binary = os.path.join(folder, "headers")
        subprocess.run(
            [options.cxx, "-std=c++17", program, "-o", binary, f"-I{ROOT / 'runtime'}",
             f"-I{ROOT / 'runtime' / 'include'}",
             *(argument for each in includes for argument in ("-isystem", str(each))),
             "-ldl"], check=True)
        print("libraries:", ", ".join(map(str, libraries)) or "none is here", flush=True)
        return subprocess.run([binary, *map(str, libraries)]).returncode


if __name__ == "__main__":
    sys.exit(main())
