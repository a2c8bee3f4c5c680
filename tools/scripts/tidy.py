#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""clang-tidy over all sources, with the compile commands of a build folder.

  tidy.py [--alone] [FOLDER]     FOLDER is a configured build folder (default: build)

Nearly all the time of a check is that of MLIR's headers, so files of equal flags are
checked together: a file of #includes is checked, and findings count in all files of
this project that it includes, headers among them. Where static names of two files
collide, the files that do not compile are checked alone.

Together, a file is not found that relies on a header that another one includes: the
build finds it, check_includes.py finds it where the build has precompiled the header,
and --alone, which takes several times as long, finds all. Fails on any finding.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = ["dialect", "passes", "codegen", "tools", "examples", "runtime"]
# Where findings count: not in what is generated, which ends with .inc, and not in the
# interfaces in C, in folders called include, which have the names of C.
OURS = (
    rf"^{ROOT}/((dialect|passes|codegen|examples|runtime/(comm|core|device))/.*"
    r"|tools/[^/]*/[^/]*)\.(h|cpp)$"
)
# Folders of fewer files are checked together.
FEW = 8
FINDING = re.compile(r"^(/[^:]*):\d+:\d+: (?:error|warning): .*$", re.MULTILINE)
# |using a::b;|, but no inherited constructors, and |namespace a = b;|.
USING = re.compile(
    r"^ *(?:using (?!namespace\b)(?!(\w+)::\1;)[\w:]*::(\w+);|namespace (\w+) =)",
    re.MULTILINE,
)
COMMENT = re.compile(r"//.*")


def list_sources(compiled):
    """The sources in a file that the build compiles: itself, or those that it includes
    where CMake compiles several together."""
    if "/Unity/" not in compiled:
        return [compiled]
    return re.findall(r'^#include "(.*)"$', pathlib.Path(compiled).read_text(), re.MULTILINE)


def read_flags(folder):
    """The flags of each source, without those that name files or precompiled headers,
    since a precompiled header makes checks slower."""
    commands = json.loads((folder / "compile_commands.json").read_text())
    paths = (path for layer in LAYERS for path in (ROOT / layer).rglob("*.cpp"))
    flags = dict.fromkeys(sorted(str(path.relative_to(ROOT)) for path in paths))
    for entry in commands:
        command = re.sub(
            r"-Xclang -include(-pch)? -Xclang \S*cmake_pch\S*", "", entry["command"]
        )
        words = shlex.split(command)
        for source in list_sources(entry["file"]):
            name = os.path.relpath(source, ROOT)
            if name in flags:
                flags[name] = tuple(words[: words.index("-o")])
    missing = [name for name, words in flags.items() if words is None]
    if missing:
        sys.exit(f"tidy.py: {folder} does not build {', '.join(missing)}")
    return flags


def make_batches(flags):
    """Lists of files of equal flags in the same folder, which know each other's names,
    or in small folders of the same layer."""
    folders = collections.defaultdict(list)
    for name, words in flags.items():
        folders[words, *name.split("/")[:2]].append(name)
    batches = collections.defaultdict(list)
    for (words, layer, folder), names in folders.items():
        # Each tool has a main.
        alone = layer == "tools" or len(names) >= FEW
        batches[words, layer, folder if alone else None] += names
    return [(words, names) for (words, *_), names in batches.items()]


def run(words, names, folder):
    """What clang-tidy prints on |names| at once."""
    with tempfile.TemporaryDirectory() as temporary:
        source, checks = ROOT / names[0], []
        if len(names) > 1:
            source = pathlib.Path(temporary) / "batch.cpp"
            source.write_text("".join(f'#include "{ROOT / name}"\n' for name in names))
            # They look at one file only. find_unused is in their place.
            checks = ["--checks=-misc-unused-*"]
        # Bodies of templates are parsed where they are instantiated: most of those in
        # MLIR's headers never are.
        done = subprocess.run(
            ["clang-tidy-19", "--quiet", f"--config-file={ROOT}/.clang-tidy",
             f"--header-filter={OURS}", "--warnings-as-errors=*", *checks, str(source),
             "--", *words[1:], "-fdelayed-template-parsing", "-ferror-limit=0"],
            cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
    if done.returncode and not FINDING.search(done.stdout):
        return done.stdout + done.stderr
    return done.stdout


def check(words, names, folder):
    """The findings in |names|."""
    output = run(words, names, folder)
    if len(names) == 1 or "[clang-diagnostic-error" not in output:
        return output
    failed = {
        match[1] for match in FINDING.finditer(output) if "clang-diagnostic-error" in match[0]
    }
    alone = [name for name in names if str(ROOT / name) in failed] or names
    rest = [name for name in names if name not in alone]
    print(f"checked alone: {' '.join(alone)}", flush=True)
    output = "".join(run(words, [name], folder) for name in alone)
    return output + (check(words, rest, folder) if rest else "")


def find_unused(name):
    """The other names that |name| declares and does not mention again. Generated code
    that it includes may use them."""
    text = COMMENT.sub("", (ROOT / name).read_text())
    if '.inc"' in text:
        return
    for match in USING.finditer(text):
        declared = match[2] or match[3]
        if len(re.findall(rf"\b{declared}\b", text)) == 1:
            line = text.count("\n", 0, match.start()) + 1
            yield f"{ROOT / name}:{line}:1: error: '{declared}' is unused"


def main():
    parser = argparse.ArgumentParser(usage="tidy.py [--alone] [FOLDER]")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("folder", nargs="?", default="build")
    args = parser.parse_args()
    folder = (ROOT / args.folder).resolve()
    flags = read_flags(folder)
    found = set(line for name in flags for line in find_unused(name))
    batches = make_batches(flags)
    if args.alone:
        batches = [(words, [name]) for words, names in batches for name in names]
    batches.sort(key=lambda batch: -len(batch[1]))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check, *batch, folder) for batch in batches]
        for job in concurrent.futures.as_completed(jobs):
            output = job.result()
            lines = [match[0] for match in FINDING.finditer(output)]
            found.update(lines or filter(None, [output.strip()]))
    for line in sorted(found):
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
