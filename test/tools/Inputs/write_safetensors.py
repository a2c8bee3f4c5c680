#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a safetensors file, or one that is broken in one way.

A tensor is KEY:DTYPE:SHAPE:VALUES, such as 0/0/1/w:F32:2x3:1,2,3,4,5,6; one value
stands for all elements. The header may then be changed by a Python expression over
`h`, its dictionary, and the file be cut.
"""

import argparse
import json
import math
import struct


def pack(dtype, value):
    if dtype == "BF16":  # the upper half; values in tests are exact
        return struct.pack("<f", value)[2:]
    code = {"F64": "<d", "F32": "<f", "F16": "<e", "I32": "<i"}[dtype]
    return struct.pack(code, int(value) if dtype == "I32" else value)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("out")
parser.add_argument("tensors", nargs="*")
parser.add_argument("--change", action="append", default=[], help="Python over h")
parser.add_argument("--text", help="the header's text as it is")
parser.add_argument("--nested", type=int, help="a header of so many brackets")
parser.add_argument("--cut", type=int, default=0, help="bytes missing at the end")
parser.add_argument("--append", type=int, default=0, help="zeros too many there")
options = parser.parse_args()

header = {}
data = b""
for tensor in options.tensors:
    key, dtype, shape, values = tensor.split(":")
    shape = [int(size) for size in shape.split("x")]
    values = [float(value) for value in values.split(",")]
    if len(values) == 1:
        values *= math.prod(shape)
    start = len(data)
    data += b"".join(pack(dtype, value) for value in values)
    header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [start, len(data)]}
for change in options.change:
    exec(change, {"h": header})
text = json.dumps(header) if options.text is None else options.text
if options.nested:
    text = "[" * options.nested
text = text.encode()
whole = struct.pack("<Q", len(text)) + text + data + bytes(options.append)
with open(options.out, "wb") as out:
    out.write(whole[: len(whole) - options.cut])
