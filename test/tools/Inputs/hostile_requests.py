#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes wrong requests to a client of libzero_compiler.

usage: hostile_requests.py CLIENT TMPDIR

Prints the exit code and the first error of each. Errors are JSON, and nothing else is
printed. A crash is an exit code that is no status of the library.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys

client, tmp = sys.argv[1:]
root = pathlib.Path(__file__).resolve().parents[3]
step = (root / "examples/quickstart.mlir").read_text()
LION = (root / "examples/optimizers/lion.mlir").read_text()
lowered = subprocess.run(
    ["zero-compile", "--emit=mlir", root / "examples/quickstart.mlir"],
    capture_output=True,
    text=True,
    check=True,
).stdout
odd = [
    {"name": name, "shape": [3]}
    for name in ['"', "\\", "a b", "\u00e9\u4e2d", "%w", "@w", "w\n", "//", "'", "\u0001", "x" * 5000]
]


def listed(parameters, recipe="sgd,wd=0,momentum=0", **more):
    if not isinstance(parameters, (str, bytes)):
        parameters = json.dumps(parameters)
    return {"parameters": parameters, "recipe": recipe, **more}


W = [{"name": "w", "shape": [3]}]
REQUESTS = {
    "{}": {},
    "two descriptions": {"step": step, "recipe": "sgd"},
    "no recipe": {"parameters": "[]"},
    "no parameters": {"recipe": "sgd"},
    "empty step": {"step": ""},
    "no op": {"step": "x"},
    "lowered step": {"step": lowered},
    "step without UTF-8": {"step": b"// \xff"},
    "deep step": {"step": "module attributes {a = " + "[" * 100000},
    "truncated list": listed('[{"name": "w", "shape": ['),
    "list of nothing": listed("[]"),
    "deep list": listed("[" * 100000),
    "list without UTF-8": listed(b'[{"name": "\xc3("}]'),
    "large extent": listed([{"name": "w", "shape": [1 << 62]}]),
    "huge extent": listed([{"name": "w", "shape": [1 << 80]}]),
    "product of extents": listed([{"name": "w", "shape": [1 << 33, 1 << 33]}]),
    "unknown field": listed([{"name": "w", "shape": [3], "dtyp": "f32"}]),
    "odd names": listed(odd),
    "name with a zero": listed([{"name": "fc\0w", "shape": [3]}]),
    "empty name": listed([{"name": "", "shape": [3]}]),
    "unknown optimizer": listed(W, "x"),
    "file as optimizer": listed(W, "own.mlir"),
    "optimizer as IR": listed(W, json.dumps({"optimizer": LION, "wd": 0.5})),
    "hyperparameter that IR lacks": listed(W, json.dumps({"optimizer": LION, "eps": 1})),
    "truncated IR": listed(W, json.dumps({"optimizer": LION[: LION.rindex("zero.yield")]})),
    "two optimizers": listed(W, json.dumps({"optimizer": LION + LION.replace("@lion", "@b")})),
    "deep IR": listed(W, json.dumps({"optimizer": LION + "{" * 100000})),
    "recipe of another type": listed(W, '{"optimizer": {}}'),
    "truncated options": listed(W, options='{"mesh"'),
    "options are a list": listed(W, options="[]"),
    "deep options": listed(W, options="[" * 100000),
    "unknown option": listed(W, options='{"stag": 1}'),
    "option for tools": listed(W, options='{"until": "placed"}'),
    "option of another type": listed(W, options='{"stage": 1.5}'),
    "null option": listed(W, options='{"mesh": null}'),
    "large option": listed(W, options='{"stage": 1e300}'),
    "wrong value": listed(W, options='{"stage": 4}'),
    "wrong axis": {"step": step, "options": '{"mesh": "tp=2"}'},
    "wrong mesh of a list": listed(W, options='{"mesh": ""}'),
    "wrong name": listed(W, options='{"name": "c"}'),
}


def run(request, environment=None, limit=None):
    arguments = [client]
    for key, value in request.items():
        # A long text is not for a command line.
        path = pathlib.Path(client).with_name(key)
        path.write_bytes(value if isinstance(value, bytes) else value.encode())
        arguments.append(f"{key}@={path}")
    return subprocess.run(
        arguments,
        capture_output=True,
        env={**os.environ, "TMPDIR": tmp, **(environment or {})},
        preexec_fn=limit,
    )


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


ENVIRONMENTS = {
    "no programs": ({"PATH": "/nowhere"}, None),
    "no temporary folder": ({"TMPDIR": "/nowhere"}, None),
    "files of 1 KiB": ({}, limit_files),
}
results = {name: run(request) for name, request in REQUESTS.items()}
for name, (environment, limit) in ENVIRONMENTS.items():
    results[name] = run({"step": step}, environment, limit)
crashes = 0
for name, done in results.items():
    text = done.stdout.decode()
    code, _, errors = text.split(" ", 2) if text.count(" ") > 1 else ("", "", "[]")
    errors = json.loads(errors)
    if code != str(done.returncode) or done.stderr or done.returncode not in range(4):
        crashes += 1
        print(name, done)
    print(name, "->", code, errors[0]["message"] if errors else "")
files = len(os.listdir(tmp))
print(f"{len(results)} requests, {crashes} crashes, {files} files left")
