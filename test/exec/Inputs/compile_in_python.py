#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a list of parameters with libzero_compiler.

usage: compile_in_python.py LIBRARY PARAMETERS
"""

import ctypes
import json
import pathlib
import sys
import threading

TEXTS = ["step", "parameters", "recipe", "options"]
OUTPUTS = ["name", "step", "header", "plan", "errors"]


class Request(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]
    _fields_ += [(name, ctypes.c_char_p) for name in TEXTS]


class Output(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("status", ctypes.c_int32)]
    _fields_ += [(name, ctypes.c_char_p) for name in OUTPUTS]
    _fields_ += [("library", ctypes.c_void_p), ("library_size", ctypes.c_uint64)]
    _fields_ += [("is_cached", ctypes.c_int32), ("reserved", ctypes.c_int32)]


compiler = ctypes.CDLL(sys.argv[1])
compiler.zero_compiler_compile.argtypes = [
    ctypes.POINTER(Request),
    ctypes.POINTER(ctypes.c_void_p),
]
compiler.zero_compiler_result_get.argtypes = [ctypes.c_void_p, ctypes.POINTER(Output)]
compiler.zero_compiler_result_destroy.argtypes = [ctypes.c_void_p]


def compile_step(**texts):
    request = Request(struct_size=ctypes.sizeof(Request))
    for name, text in texts.items():
        setattr(request, name, text.encode())
    result = ctypes.c_void_p()
    compiler.zero_compiler_compile(request, result)
    output = Output(struct_size=ctypes.sizeof(Output))
    compiler.zero_compiler_result_get(result, output)
    found = {name: getattr(output, name).decode() for name in OUTPUTS}
    found["status"] = output.status
    found["library"] = ctypes.string_at(output.library, output.library_size)
    compiler.zero_compiler_result_destroy(result)
    return found


parameters = pathlib.Path(sys.argv[2]).read_text()
recipe = json.dumps({"optimizer": "adamw", "max_norm": 1, "wd": 0.1, "lr": "rate"})
options = json.dumps({"mesh": "dp=2", "stage": 2})


def show(found, more=""):
    errors = json.loads(found["errors"])
    print(found["status"], repr(found["name"]), errors, more)


done = compile_step(parameters=parameters, recipe=recipe, options=options)
count = done["step"].count("zero.parameter")
ranks = json.loads(done["plan"])["ranks"]
show(done, f"step with {count} parameters, plan of {ranks} ranks")
show(compile_step(parameters=parameters, recipe=recipe, options='{"meshes": ""}'))

libraries = []


def compile_again():
    again = compile_step(parameters=parameters, recipe=recipe, options=options)
    libraries.append(again["library"])


threads = [threading.Thread(target=compile_again) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{len(libraries)} threads, {len(set(libraries))} library")
