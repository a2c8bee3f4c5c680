#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps with gradients that are not finite, on meshes of several axes.

Each parameter in turn, of every class, gets one element that is inf, -inf or nan. The
element arrives in the second of two backward passes, on one rank and on all ranks that
deliver the same gradient. One of two groups is clipped. Claims, for each mesh, ZeRO
stage and offload:

  skipped    exactly these steps are skipped, on all ranks, clipped or not;
  group      exactly the norm of that parameter's group is not finite;
  bound      everything lies within the rounding bound of the logical step in f64;
  untouched  state and counters have the same bits as without these steps;
  applied    a step is applied if its gradients are zero, or so large that their square
             overflows f32.
"""

import argparse
import itertools
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from claims import Claims
from topology import CLASSES, ROOT

MESHES = ["dp=4", "dp=2,cp=2,tp=2", "edp=2,ep=2,tp=2", "ep=2,tp=3,edp=1"]
FLAGS = [["--stage=0"], ["--stage=1"], ["--stage=2"],
         ["--stage=1", "--offload=optimizer"], ["--stage=3", "--offload=parameters"]]
BACKWARDS = 2
BAD = [math.inf, math.nan, -math.inf]
SQUARE_IS_NO_F32 = 3.0e19


def write_step(mesh, path):
    text = subprocess.run(
        [sys.executable, ROOT / "tools/scripts/make_step.py", "--mesh", mesh,
         "--classes", CLASSES, "--parameters", "8", "--sizes", "33,1,7",
         "--gradient", "f32", "--groups", "2", "--norm", "group",
         "--units", "2",
         "--optimizer", ROOT / "examples/optimizers/adamw.mlir"],
        stdout=subprocess.PIPE, text=True, check=True).stdout
    # The second group is not clipped: it is updated with what was reduced.
    clip = re.search(r"^ *%c1:\d+ = zero.clip (.*?) by .*\n", text, re.M)
    reduced = clip.group(1).split(", ")
    text = text.replace(clip.group(0), "")
    text = re.sub(r"%c1#(\d+)", lambda match: reduced[int(match.group(1))], text)
    path.write_text(text)
    return text


class Parameter:
    """What a rank holds of one, and who delivers the same gradient."""

    def __init__(self, declaration, gradient, axes):
        self.name, shape, sharding = re.match(
            r"zero.parameter @(\S+) : ([\dx]+)xbf16(?:, sharded = \[(.*)\])?",
            declaration).groups()
        self.shape = [int(extent) for extent in shape.split("x")]
        for entry in (sharding or "").split(", "):
            axis, _, dim = entry.partition(" : ")
            if axis:
                self.shape[int(dim or 0)] //= axes[axis]
        self.replicated = [axis for axis in axes
                           if not re.search(rf"\b{axis}\b", gradient)]


def read_parameters(text, axes):
    declarations = re.findall(r"^zero.parameter .*", text, re.M)
    backward = re.search(r"zero.backward\(.*", text).group(0)
    gradients = re.findall(r"!zero.value<[^>]*>", backward)
    return [Parameter(*both, axes) for both in zip(declarations, gradients)]


class Gradients:
    """Of all steps, backward passes, ranks and parameters, as they are written down."""

    def __init__(self, axes, parameters):
        self.ranks = list(itertools.product(*map(range, axes.values())))
        self.axes = list(axes)
        self.parameters = parameters
        self.header, self.data, self.steps = {}, b"", 0

    def add(self, value, bad=None, poisoned=None, origin=0):
        """A step of |value|; one element of |poisoned| is |bad| on rank |origin|."""
        for backward, rank in itertools.product(range(BACKWARDS),
                                                range(len(self.ranks))):
            for parameter in self.parameters:
                count = math.prod(parameter.shape)
                values = [value * (backward + 1)] * count
                if parameter is poisoned and backward == 1 and all(
                        mine == its or axis in parameter.replicated
                        for axis, mine, its in zip(
                            self.axes, self.ranks[rank], self.ranks[origin])):
                    values[-1] = bad
                start = len(self.data)
                self.data += struct.pack(f"<{count}f", *values)
                key = f"{self.steps}/{backward}/{rank}/{parameter.name}"
                self.header[key] = {"dtype": "F32", "shape": parameter.shape,
                                    "data_offsets": [start, len(self.data)]}
        self.steps += 1

    def write(self, path):
        text = json.dumps(self.header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + self.data)


def run(bin_dir, step, flags, gradients):
    done = subprocess.run(
        [pathlib.Path(bin_dir) / "zero-run", step, "--json", *flags,
         f"--gradients={gradients}", "--inputs=0.0078125", "--bucket-bytes=256"],
        capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"equal": False, "first_outside": done.stderr.strip(), "steps": []}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="folder of zero-run")
    options = parser.parse_args()
    claims = Claims()
    claim = claims.claim

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for mesh in MESHES:
            axes = {axis: int(size) for axis, size in
                    (entry.split("=") for entry in mesh.split(","))}
            step = folder / "step.mlir"
            parameters = read_parameters(write_step(mesh, step), axes)
            some, none = Gradients(axes, parameters), Gradients(axes, parameters)
            outcomes, group_of, named = [], {}, {}
            for i, parameter in enumerate(parameters):
                for gradients in (some, none):
                    gradients.add(0.125 * (i + 1))
                group_of[some.steps] = i % 2
                origin = (3 * i + 1) % len(some.ranks)
                named[some.steps] = (f"gradient of '{parameter.name}' on rank ",
                                     f"rank {origin} (backward pass {BACKWARDS} of ")
                some.add(0.5, BAD[i % 3], parameter, origin)
                outcomes += ["applied", "skipped"]
            for value in (0.0, SQUARE_IS_NO_F32, 0.125):
                for gradients in (some, none):
                    gradients.add(value)
                outcomes.append("applied")
            files = [folder / "some.safetensors", folder / "none.safetensors"]
            for gradients, path in zip((some, none), files):
                gradients.write(path)

            for flags in FLAGS:
                what = f"{mesh} {' '.join(flags)}"
                result, without = [run(options.bin, step, flags, path)
                                   for path in files]
                found = [one["outcome"].partition(":")[0] for one in result["steps"]]
                claim("skipped and applied", what, found == outcomes, found)
                for number, group in group_of.items():
                    reported = result["steps"][number]["reported"] if found else {}
                    finite = [isinstance(reported.get(f"norm{i}"), (int, float))
                              for i in range(2)]
                    claim("group", f"{what}, step {number}",
                          finite == [group != 0, group != 1], reported)
                    outcome = result["steps"][number]["outcome"] if found else ""
                    claim("named", f"{what}, step {number}",
                          all(text in outcome for text in named[number]), outcome)
                claim("bound", what, result["equal"], result["first_outside"])
                claim("untouched", what,
                      result.get("state_hash", 0) == without.get("state_hash"),
                      f"{result.get('state_hash')} and {without.get('state_hash')}")
    return claims.finish()


if __name__ == "__main__":
    sys.exit(main())
