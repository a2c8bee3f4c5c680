#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints what a library demands of each of its inputs: list_inputs.py BUILD LIBRARY."""

import ctypes
import pathlib
import sys


class InputInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        *[(name, ctypes.c_int32) for name in ("is_tokens", "is_addend", "is_hyper")],
        ("name", ctypes.c_char_p),
        *[(name, ctypes.c_int32) for name in ("is_positive", "reserved")],
    ]


runtime = ctypes.CDLL(pathlib.Path(sys.argv[1]) / "lib" / "libzero_rt.so")
library = ctypes.c_void_p()
if runtime.zero_rt_open(sys.argv[2].encode(), ctypes.byref(library)):
    sys.exit("the library cannot be opened")
info = InputInfo(struct_size=ctypes.sizeof(InputInfo))
number = 0
while runtime.zero_rt_library_input(library, number, ctypes.byref(info)) == 0:
    print(f"input {number} {'must be finite' if info.is_hyper else 'may be anything'}")
    number += 1
