#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that no file includes a header of a higher layer, and that files include the
precompiled headers that they use.

The configuration of the build checks link dependencies. This script finds a header that
a file includes without a link dependency. A build with precompiled headers does not
find that a file lacks one of them.
"""

import functools
import pathlib
import re
import sys

# What files below a folder may include of this project.
ALLOWED = {
    "runtime": ["zero_rt/"],
    "dialect/zero": ["dialect/zero/"],
    "dialect/zrt": ["dialect/"],
    "dialect/interpret": ["dialect/"],
    "passes/pipeline": ["dialect/", "passes/"],
    "codegen": ["dialect/", "passes/stage/", "codegen/", "zero_rt/"],
}
# Folders of passes/ do not know each other.
for folder in ["layout", "collective", "accumulate", "offload", "scalar", "lower",
             "stage", "check"]:
    ALLOWED[f"passes/{folder}"] = ["dialect/", f"passes/{folder}/"]

FOREIGN_TO_RUNTIME = ["mlir/", "llvm/", "dialect/", "passes/", "codegen/"]
LAYERS = ["dialect/", "passes/", "codegen/", "tools/", "zero_rt/"]
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)

# Headers that ZeroLayers.cmake precompiles, beside those of the dialects, and Format.h
# within one of them; and what is used of them.
PRECOMPILED = {
    "random": r"\bstd::(mt19937|\w+_distribution)",
    "thread": r"\bstd::(thread|this_thread)\b",
    "llvm/ADT/MapVector.h": r"\bMapVector<",
    "llvm/ADT/StringExtras.h": r"\b(llvm::join|toHex|llvm::isDigit|llvm::isAlnum)\(",
    "llvm/ADT/TypeSwitch.h": r"\bTypeSwitch<",
    "llvm/Support/FileSystem.h": r"\bsys::fs::",
    "llvm/Support/Format.h": r"\bllvm::format\(",
    "llvm/Support/FormatVariadic.h": r"\bformatv\(",
    "llvm/Support/JSON.h": r"\bjson::[A-Z]",
    "mlir/Dialect/Arith/IR/Arith.h": r"\barith::[A-Z]",
    "mlir/Dialect/LLVMIR/LLVMDialect.h": r"\bLLVM::[A-Z]",
    "mlir/Dialect/Math/IR/Math.h": r"\bmath::[A-Z]",
    "mlir/Parser/Parser.h": r"\bparseSource(String|File)\b",
    "mlir/Pass/PassManager.h": r"(?<!legacy::)\b(Op)?PassManager\b",
}
COMMENT = re.compile(r"//.*")


@functools.lru_cache(maxsize=None)
def reached(root, path):
    """What |path| includes, and what of this project includes it for |path|."""
    names = set(INCLUDE.findall(path.read_text()))
    for name in list(names):
        if (root / name).exists():
            names |= reached(root, root / name)
    return names


def missing(root):
    for layer in LAYERS[:4]:
        for path in sorted((root / layer).rglob("*.cpp")):
            text = COMMENT.sub("", path.read_text())
            for name, use in PRECOMPILED.items():
                if re.search(use, text) and name not in reached(root, path):
                    yield path.relative_to(root), name


def violations(root):
    for folder, allowed in ALLOWED.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".h", ".cpp", ".c", ".td", ".def"}:
                continue
            for name in INCLUDE.findall(path.read_text()):
                ours = any(name.startswith(layer) for layer in LAYERS)
                if ours and not any(name.startswith(a) for a in allowed):
                    yield path.relative_to(root), name
                elif folder == "runtime" and any(
                    name.startswith(f) for f in FOREIGN_TO_RUNTIME
                ):
                    yield path.relative_to(root), name


def main():
    root = pathlib.Path(sys.argv[1])
    found = list(violations(root))
    for path, name in found:
        print(f"{path}: must not include {name}")
    lacking = list(missing(root))
    for path, name in lacking:
        print(f"{path}: must include {name}")
    return 1 if found or lacking else 0


if __name__ == "__main__":
    sys.exit(main())
