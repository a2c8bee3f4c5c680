#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads checkpoints as docs/checkpoints.md describes them, and joins their pieces.

  read_checkpoint.py FOLDER          lists the values: name, dtype, elements
  read_checkpoint.py FOLDER OTHER    exits with 1 if they do not have the same values

Of a sum of gradients within a step, of which ranks have addends, it lists each addend.
With --summed they are one value: the sum in f64, without the factor that gradients arrive
with. So checkpoints of jobs on other numbers of ranks have the same values.

Shares no code with the runtime, and needs no package.
"""

import fractions
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


def find_positions(box, elements):
    """Where the elements of a part are in the whole parameter, and how many that has. The
    box of the part is WHOLE:BEGIN+EXTENT for each dimension."""
    positions, whole = [0], 1
    for dimension in box.split("x") if box else [f"{elements}:0+{elements}"]:
        size, place = dimension.split(":")
        begin, extent = map(int, place.split("+"))
        here = range(begin, begin + extent)
        positions = [outer * int(size) + inner for outer in positions for inner in here]
        whole *= int(size)
    return positions, whole


def read_addend(place):
    """(place, addend, factor): "addend:1/4" is behind the place of a piece of an addend.
    Behind it is the factor that gradients arrive with, such as "prescaled:1/4,-1,0"."""
    place, _, factor = place.partition(" prescaled:")
    place, _, addend = place.partition(" addend:")
    return place, addend, factor


def read_checkpoint(folder):
    """All values by name and addend: (dtype, elements in order, as bytes). And by name the
    factor that gradients arrive with, for one batch in a step."""
    folder = pathlib.Path(folder)
    index = json.loads((folder / "checkpoint.json").read_text())
    assert index["format"] == "zero-opt checkpoint" 
    assert index["version"] == (3 if "backward_passes" in index else 2)
    values, factors = {}, {}
    for rank, file in enumerate(index["files"]):
        path = folder / f"save-{index['save']}" / f"rank-{rank:05}.safetensors"
        assert path.stat().st_size == file["bytes"], path
        for name, place, dtype, data in read_tensors(path):
            place, addend, factor = read_addend(place)
            if factor:
                quotient, passes, _tokens = factor.split(",")
                passes_of_step = fractions.Fraction(1, index["batch_ranks"])
                factors[name] = fractions.Fraction(quotient) * passes_of_step ** int(passes)
            name += f" of {addend}" if addend else ""
            begin, end, elements, _checksum, *box = place.split(" ")
            positions, whole = find_positions("".join(box), int(elements))
            assert len(positions) == int(elements), name
            known, value = values.setdefault(name, (dtype, [None] * whole))
            assert known == dtype and len(value) == whole, name
            width = WIDTHS[dtype]
            for i, position in enumerate(positions[int(begin) : int(end)]):
                assert value[position] is None, f"{name}: element {position} is there twice"
                value[position] = data[i * width : (i + 1) * width]
    for name, (_, value) in values.items():
        assert None not in value, f"{name}: element {value.index(None)} is missing"
    return values, factors


def sum_addends(values, factors):
    """Values by name; the addends of one as their sum in f64, without its factor and rounded
    once."""
    numbers, summed = {}, {}
    for name, (dtype, value) in values.items():
        base = name.partition(" of ")[0]
        if dtype not in ("F32", "F64"):
            assert base not in summed, f"{name}: addends of {dtype} are not summed here"
            summed[base] = value
            continue
        letter = "<f" if dtype == "F32" else "<d"
        read = [number for item in value for number in struct.unpack(letter, item)]
        known = numbers.setdefault(base, [0.0] * len(read))
        numbers[base] = [a + b for a, b in zip(known, read)]
        factor = float(factors.get(base, 1))
        summed[base] = [struct.pack(letter, number / factor) for number in numbers[base]]
    return summed


def main():
    is_summed = "--summed" in sys.argv
    arguments = [argument for argument in sys.argv if argument != "--summed"]
    values, factors = read_checkpoint(arguments[1])
    if len(arguments) == 2:
        for name, (dtype, value) in sorted(values.items()):
            print(name, dtype, len(value))
        return 0
    others, other_factors = read_checkpoint(arguments[2])
    if is_summed:
        values, others = sum_addends(values, factors), sum_addends(others, other_factors)
    wrong = {name for name in values.keys() | others.keys()
             if values.get(name) != others.get(name)}
    for name in sorted(wrong):
        print(f"{name} differs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
