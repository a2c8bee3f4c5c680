# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a step with libzero_compiler.

usage: _compile.py LIBRARY < REQUEST > ANSWER

compiler.py runs this file as a program: it needs nothing of the package. A REQUEST is an
object of JSON with the texts of zero_compiler_request. An ANSWER is a line of JSON, and
then the bytes of the compiled step.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
from typing import Any

_TEXTS = ("step", "parameters", "recipe", "options")
_OUTPUTS = ("name", "step", "header", "plan", "errors")


class _Request(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        *((name, ctypes.c_char_p) for name in _TEXTS),
    ]


class _Output(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("status", ctypes.c_int32),
        *((name, ctypes.c_char_p) for name in _OUTPUTS),
        ("library", ctypes.c_void_p),
        ("library_size", ctypes.c_uint64),
        ("is_cached", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


def compile_texts(path: str, texts: dict[str, str]) -> tuple[dict[str, Any], bytes]:
    """The head of an answer, and a compiled step. Raises OSError if the library cannot
    be loaded."""
    library = ctypes.CDLL(path)
    library.zero_compiler_result_get.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.zero_compiler_result_destroy.argtypes = [ctypes.c_void_p]
    request = _Request(struct_size=ctypes.sizeof(_Request))
    for name, text in texts.items():
        setattr(request, name, text.encode())
    result = ctypes.c_void_p()
    status = library.zero_compiler_compile(ctypes.byref(request), ctypes.byref(result))
    output = _Output(struct_size=ctypes.sizeof(_Output), status=status, errors=b"[]")
    library.zero_compiler_result_get(result, ctypes.byref(output))
    step = ctypes.string_at(output.library, output.library_size)
    head = {
        "status": output.status,
        "errors": [error["message"] for error in json.loads(output.errors)],
        "is_cached": bool(output.is_cached),
        "bytes": len(step),
    }
    library.zero_compiler_result_destroy(result)
    return head, step


def main() -> None:
    # Python's handler would wait for the end of the compile.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # A training script may ignore it, and the compiler waits for a process.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, step = compile_texts(sys.argv[1], json.load(sys.stdin))
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + step)


if __name__ == "__main__":
    main()
