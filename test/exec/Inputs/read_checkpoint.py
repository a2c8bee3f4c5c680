#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads checkpoints as docs/checkpoints.md describes them, and joins their pieces.

  read_checkpoint.py FOLDER          lists the values: name, part, dtype, elements
  read_checkpoint.py FOLDER OTHER    exits with 1 if they do not have the same values

Shares no code with the runtime, and needs no package.
"""

import json
import pathlib
import struct
import sys

WIDTHS = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2}


def read_tensors(path):
    """The tensors of a safetensors file: (name, metadata, dtype, bytes)."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__")
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        data = content[8 + length + begin : 8 + length + end]
        assert len(data) == tensor["shape"][0] * WIDTHS[tensor["dtype"]], name
        yield name, metadata[name], tensor["dtype"], data


def read_checkpoint(folder):
    """All values by name and part: (dtype, bytes of all elements in order)."""
    folder = pathlib.Path(folder)
    index = json.loads((folder / "checkpoint.json").read_text())
    assert index["format"] == "zero-opt checkpoint" and index["version"] == 1
    pieces = {}
    for rank, file in enumerate(index["files"]):
        path = folder / f"save-{index['save']}" / f"rank-{rank:05}.safetensors"
        assert path.stat().st_size == file["bytes"], path
        for name, place, dtype, data in read_tensors(path):
            begin, end, elements, _checksum, *part = place.split(" ")
            key = (name, " ".join(part))
            pieces.setdefault(key, []).append(
                (int(begin), int(end), int(elements), dtype, data)
            )
    values = {}
    for key, found in pieces.items():
        found.sort()
        covered = 0
        for begin, end, _, _, _ in found:
            assert begin == covered, f"{key}: element {covered} is missing or twice"
            covered = end
        assert covered == found[0][2], key
        values[key] = (found[0][3], b"".join(piece[4] for piece in found))
    return values


def main():
    values = read_checkpoint(sys.argv[1])
    if len(sys.argv) == 2:
        for (name, part), (dtype, data) in sorted(values.items()):
            print(name, part or "-", dtype, len(data) // WIDTHS[dtype])
        return 0
    others = read_checkpoint(sys.argv[2])
    wrong = {key for key in values.keys() | others.keys()
             if values.get(key) != others.get(key)}
    for name, part in sorted(wrong):
        print(f"{name} {part} differs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
