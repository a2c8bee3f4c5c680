#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches all files for the words that test/words.txt forbids.

  check_words.py                 the files of this repository
  check_words.py FILE...         these files
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "test/words.txt"
FOLDERS = "codegen dialect docs examples passes python runtime test tools".split()
SUFFIXES = {".c", ".cpp", ".def", ".h", ".md", ".mlir", ".py", ".sh", ".td", ".test"}


def read_rules() -> list[tuple[re.Pattern[str], str, re.Pattern[str] | None]]:
    rules = []
    for number, line in enumerate(RULES.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in re.split(r"\s\|\s|\s\|$", line)]
        if len(fields) != 3 or not all(fields[:2]):
            sys.exit(f"{RULES}:{number}: expected 'pattern | word | files'")
        pattern, instead, files = fields
        allowed = re.compile(files) if files else None
        rules.append((re.compile(pattern), instead, allowed))
    return rules


def list_files() -> list[pathlib.Path]:
    """All source files, without build outputs."""
    files = [ROOT / "README.md"]
    for folder in FOLDERS:
        files += (ROOT / folder).rglob("*")
    return sorted(file for file in files if file.suffix in SUFFIXES and file.is_file())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    files = [file.resolve() for file in parser.parse_args().files] or list_files()
    rules = read_rules()
    found = 0
    for file in files:
        path = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
        if path == pathlib.Path("tools/scripts/check_words.py"):
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            for pattern, instead, allowed in rules:
                match = pattern.search(line)
                if match and not (allowed and allowed.search(path.as_posix())):
                    print(f"{path}:{number}: '{match[0]}': write {instead}")
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
