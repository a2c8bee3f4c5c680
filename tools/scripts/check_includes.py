#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that no file includes a header of a higher layer.

The configuration of the build checks link dependencies. This script finds a header that
a file includes without a link dependency.
"""

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
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
