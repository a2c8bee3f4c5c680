# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compare_headers.py CLANG... OLD NEW: what a program compiled with the headers in OLD
relies on and the headers in NEW have otherwise, a line each.

Structs that begin with struct_size may have more fields at their end. All other structs,
the numbers of enumerations, the macros and the types of functions are the same."""

import json
import pathlib
import re
import subprocess
import sys

RECORD = re.compile(r"^ *0 \| (?:struct|union) (zero_rt_\w+)\n(.*?)\[sizeof=(\d+)", re.M | re.S)
MACRO = re.compile(r"^#define (ZERO_RT_\w+) (.+)$", re.M)
FIELD = re.compile(r"^ *(\d+) \|   (\S.*) (\w+)$", re.M)


def compile(clang, include, options):
    """The output of a compilation of all headers in C."""
    names = sorted(path.name for path in (include / "zero_rt").glob("*.h"))
    # mpi.h has one function, and needs another header.
    text = "".join(f'#include "zero_rt/{name}"\n' for name in names if name != "mpi.h")
    command = [*clang, "-xc", "-std=c11", "-I", str(include)]
    run = subprocess.run([*command, *options, "-"], input=text, stdout=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f"{include}: the headers do not compile")
    return run.stdout


def structs(clang, include):
    text = compile(clang, include, ["-fsyntax-only", "-Xclang", "-fdump-record-layouts-complete"])
    return {name: (FIELD.findall(body), int(size)) for name, body, size in RECORD.findall(text)}


def place(field):
    """Where a field is, and its type. Pointers to data are alike."""
    return field[0], "*" if field[1].endswith(" *") else field[1]


def declarations(clang, include):
    """The values of enumerators and macros and the types of functions, by name."""
    tree = json.loads(compile(clang, include, ["-fsyntax-only", "-Xclang", "-ast-dump=json"]))
    found = {}
    for node in tree["inner"]:
        if node["kind"] == "EnumDecl":
            number = -1
            items = [i for i in node["inner"] if i["kind"] == "EnumConstantDecl"]
            for item in items:
                values = [i["value"] for i in item.get("inner", []) if "value" in i]
                number = int(values[0]) if values else number + 1
                # How many there are may grow; it is no value of an argument.
                if not item["name"].endswith("_COUNT"):
                    found[item["name"]] = str(number)
        elif node["kind"] in ("FunctionDecl", "TypedefDecl"):
            if node["name"].startswith("zero_rt_"):
                found[node["name"]] = node["type"]["qualType"]
    for name, text in MACRO.findall(compile(clang, include, ["-E", "-dM"])):
        if not name.endswith(("_H", "_ABI_VERSION")):
            found[name] = text
    return found


def main():
    *clang, old, new = sys.argv[1:]
    old, new = pathlib.Path(old), pathlib.Path(new)
    count = 0
    now = structs(clang, new)
    for name, (fields, size) in structs(clang, old).items():
        count += 1
        later, later_size = now.get(name, ([], 0))
        if fields[0][2] == "struct_size":
            later = later[: len(fields)]
        elif later_size != size:
            print(f"{name}: has {later_size} bytes, had {size}")
        for i, field in enumerate(fields):
            # A program that is compiled knows places and types.
            if i >= len(later) or place(later[i]) != place(field):
                print(f"{name}.{field[2]}: was {field[1]} at byte {field[0]}")
                break
            if later[i] != field:
                print(f"{name}.{field[2]}: is called {later[i][1]} {later[i][2]}")
        if len(later) > len(fields):
            print(f"{name}: has {len(later)} fields, had {len(fields)}, and cannot grow")
    now = declarations(clang, new)
    for name, text in declarations(clang, old).items():
        count += 1
        if now.get(name) != text:
            print(f"{name}: is {now.get(name, 'gone')}, was {text}")
    print(f"compared {count} structs, numbers, types and functions")


main()
