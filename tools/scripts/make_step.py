#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a logical step with many parameters, for tests and benchmarks.

  make_step.py --parameters 46000 --optimizer examples/optimizers/adamw.mlir
  make_step.py --mesh edp=2,ep=2,tp=2 --classes dense,column,expert --optimizer ...

Sizes repeat a list with empty, 1-element and odd tensors. Classes of parameters repeat
a list as well. A class decides how a parameter lives on the mesh, and how its gradient
arrives. Groups take parameters in turn. Every second group has no decay. On a mesh with
an axis pp, the first parameters are on the first pipeline stage, the next ones on the
second, and so on. Tied parameters are on the first and on the last stage.
"""

import argparse
import pathlib
import re
import sys
from dataclasses import dataclass, field

# Axes whose ranks have batches of their own; the weight divides by them.
BATCH = ["dp", "edp", "ep"]


@dataclass
class Placement:
    """Over which axes a parameter is sharded (and in which dimension), and how its
    gradient arrives. On axes in |alone| the parameter is on one coordinate. Over axes
    that are not named all ranks have the same."""

    sharded: dict = field(default_factory=dict)
    partial: list = field(default_factory=list)
    reduced: list = field(default_factory=list)
    alone: list = field(default_factory=list)


# As models have them; an axis that a mesh lacks is left out.
CLASSES = {
    # What every rank has whole: layer norms, biases, routers.
    "dense": Placement(partial=["dp", "edp", "ep", "cp"]),
    # The same where tensor-parallel ranks have parts of the sequence.
    "sequence": Placement(partial=["dp", "edp", "ep", "cp", "tp"]),
    "row": Placement({"tp": 0}, ["dp", "edp", "ep", "cp"]),
    "column": Placement({"tp": 1}, ["dp", "edp", "ep", "cp"]),
    # Key and value weights with fewer heads than ranks: tp is sub0 x sub1.
    "kv": Placement({"sub0": 0}, ["dp", "edp", "ep", "cp", "sub1"]),
    "expert": Placement({"ep": 0}, ["dp", "edp", "cp", "tp"], ["ep"]),
    "expert_tp": Placement({"ep": 0, "tp": 1}, ["dp", "edp", "cp"], ["ep"]),
    # Experts over the tensor-parallel ranks, too.
    "expert_wide": Placement({"ep": 0, "tp": 0}, ["dp", "edp", "cp"], ["ep", "tp"]),
    # One tensor for each expert, on the ranks that have it.
    "expert_alone": Placement({"tp": 1}, ["dp", "edp", "cp"], ["ep"], ["ep"]),
}


class Parameter:
    """|place| is a list of (axis, coordinate): where the parameter is, and nowhere else."""

    def __init__(self, name, size, placement, mesh, place):
        self.name = name
        self.on = ""
        if place:
            self.on = f", on = [{', '.join(f'{axis} : {c}' for axis, c in place)}]"
        self.sharded = {a: d for a, d in placement.sharded.items() if a in mesh}
        self.partial = [axis for axis in placement.partial if axis in mesh]
        if sum(axis == "pp" for axis, _ in place) > 1:
            self.partial.append("pp")
        self.reduced = [axis for axis in placement.reduced if axis in mesh]
        # A slice of |size| elements in the last dimension that is sharded.
        self.shape = [1] * max([0, *self.sharded.values()]) + [size]
        for axis, dim in self.sharded.items():
            self.shape[dim] *= mesh[axis]

    def lives(self):
        """What the parameter's own type says."""
        axes = [f"{axis} : {dim}" if dim else axis for axis, dim in self.sharded.items()]
        return (f", sharded = [{', '.join(axes)}]" if axes else "") + self.on

    def type(self, dtype, axes=None, scaled="", arrives=False):
        text = "x".join(map(str, [*self.shape, dtype])) + self.lives()
        if axes:
            text += f", partial = [{', '.join(axes)}]"
        if arrives and self.reduced:
            text += f", reduced = [{', '.join(self.reduced)}]"
        return f"!zero.value<{text}{scaled}>"


def stages_of(index, options, mesh):
    """The pipeline stages that a parameter is on."""
    last = mesh.get("pp", 1) - 1
    if last > 0 and index in numbers(options.tied):
        return [0, last]
    return [index * (last + 1) // options.parameters]


def class_of(index, options):
    names = options.classes.split(",")
    return CLASSES[names[index % len(names)]]


def frozen_class(index, beside, options):
    """A class for a parameter in the place of one of class |beside|."""
    other = class_of(index, options)
    return other if other.alone == beside.alone else beside


def place_of(index, placement, options, mesh):
    """Where a parameter of this placement is, as (axis, coordinate)."""
    stages = stages_of(index, options, mesh) if "pp" in mesh else []
    alone = [(axis, index // 2 % mesh[axis]) for axis in placement.alone if axis in mesh]
    return [*alone, *(("pp", stage) for stage in stages)]


def write_step(options, out):
    mesh = read_mesh(options)
    sizes = numbers(options.sizes)
    everyone = range(options.parameters)
    places = [place_of(i, class_of(i, options), options, mesh) for i in everyone]
    parameters = [
        Parameter(
            f"@layer{i}.weight", sizes[i % len(sizes)], class_of(i, options), mesh, places[i]
        )
        for i in everyone
    ]
    units = split_units(options.units, lambda i: tuple(places[i]))
    optimizers = [pathlib.Path(file) for file in options.optimizer]

    axes = ", ".join(f'"{axis}" = {size}' for axis, size in mesh.items())
    out.write(f"zero.mesh @cluster <[{axes}]>\n")
    if options.activations:
        for i in range(mesh.get("pp", 1) - 1):
            kind = ["?x6xf32", "4xi64"][i % 2]
            out.write(f"zero.activation @a{i} : tensor<{kind}> over pp from {i} to {i + 1}\n")
    optional = numbers(options.optional)
    uses = dict.fromkeys(numbers(options.used_twice), " uses 2")
    uses.update(dict.fromkeys(numbers(options.used_any), " uses any"))
    for i, one in enumerate(parameters):
        flags = " optional" * (i in optional) + uses.get(i, "")
        lives = "x".join(map(str, [*one.shape, options.dtype])) + one.lives()
        out.write(f"zero.parameter {one.name} : {lives}{flags}\n")
    count = min(options.groups, options.parameters)
    groups = [range(group, options.parameters, count) for group in range(count)]
    for group, members in enumerate(groups):
        listed = ", ".join(parameters[i].name for i in members)
        skips = options.absent == "skip" and set(members) <= set(optional)
        out.write(f"zero.group @group{group} [{listed}]{' absent skip' * skips}\n")
    for unit, members in enumerate(units):
        names = [parameters[i].name for i in members]
        for i in range(options.frozen):
            number = unit * options.frozen + i
            one = Parameter(
                f"@unit{unit}.frozen{i}",
                # Others than those of the trained parameters beside it.
                sizes[(number + 1) % len(sizes)],
                frozen_class(number + 2, class_of(members[0], options), options),
                mesh,
                places[members[0]],
            )
            dtype = [options.dtype, "bf16"][number % 2]
            lives = "x".join(map(str, [*one.shape, dtype])) + one.lives()
            out.write(f"zero.parameter {one.name} : {lives} frozen\n")
            names.append(one.name)
        travels = f" gather_dtype {options.gather_dtype}" * bool(options.gather_dtype)
        out.write(f"zero.unit @unit{unit} [{', '.join(names)}]{travels}\n")
    orders = []
    everywhere = [places[members[0]] or [("", 0)] for members in units]
    for order in range(min(options.unit_orders, len(units))):
        # Each begins with another unit; every other one goes backward.
        turned = [*range(order, len(units)), *range(order)]
        turned = [turned[0], *reversed(turned[1:])] if order % 2 == 0 else turned
        if all(differ(turned, other, everywhere) for other in orders):
            orders.append(turned)
            listed = ", ".join(f"@unit{unit}" for unit in turned)
            out.write(f"zero.unit_order [{listed}]\n")
    for optimizer in dict.fromkeys(optimizers):
        out.write(optimizer.read_text())
    if options.loss_scale:
        out.write(pathlib.Path(options.loss_scale).read_text())
    schedules = "".join(pathlib.Path(file).read_text() for file in options.schedule)
    out.write(schedules)
    scheduled = re.findall(r"^zero\.schedule @(\w+)", schedules, re.MULTILINE)

    def types(write, members=everyone):
        return ", ".join(write(parameters[i]) for i in members)

    def final(members):
        return types(lambda one: one.type(options.accumulator), members)

    def values(name, members=everyone):
        one = options.parameters == 1
        return ", ".join(f"%{name}" if one else f"%{name}#{i}" for i in members)

    def results(name):
        count = options.parameters
        return f"%{name}" if count == 1 else f"%{name}:{count}"

    # What is left to divide by stands in the types.
    batch = [axis for axis in mesh if axis in BATCH]
    weights = {
        "sum": ([], []),
        "raw": (["accumulation", *batch], []),
        "mean": (["accumulation", *batch], ["accumulation"]),
        "averaged": (["accumulation", *batch], ["accumulation", *batch]),
        "tokens": (["tokens"], []),
    }
    divided, arrived = weights[options.normalize]
    multiplied = ["loss_scale : 1"] * bool(options.loss_scale)
    left = multiplied + [f"{symbol} : 1" for symbol in divided if symbol not in arrived]
    scaled = f", scaled = [{', '.join(left)}]" * bool(left)
    weight = ", ".join(f"{symbol} : -1" for symbol in divided)
    arrival = ", ".join(multiplied + [f"{symbol} : -1" for symbol in arrived])
    # Of a batch or of a part of its sequences; tensor-parallel ranks have the same.
    counted = [axis for axis in CLASSES["dense"].partial if axis in mesh]
    counts = f", partial = [{', '.join(counted)}]" * bool(counted)
    tokens = f", %tokens: !zero.value<f64{counts}> {{zero.tokens}}"
    tokens *= options.normalize == "tokens"
    clips_to = "%max_norm" if options.max_norm == "input" else options.max_norm
    max_norm = ", %max_norm: !zero.value<f64>" * (options.max_norm == "input")
    loss_scale = " loss_scale @loss_scale" * bool(options.loss_scale)
    nonfinite = f" nonfinite {options.nonfinite}" * (options.nonfinite != "skip")
    one_backward = " one_backward" * options.one_backward
    alike = [
        axis
        for axis in mesh
        if axis != "pp"
        and any(
            axis not in [*one.sharded, *one.partial, *one.reduced]
            for one in parameters
        )
    ]
    replicated = f" replicated [{', '.join(alike)}]" * bool(alike)
    arriving = types(
        lambda one: one.type(options.gradient, one.partial + ["micro"], scaled, True)
    )
    out.write(
        f"zero.step @train on @cluster normalize({weight}){nonfinite}{loss_scale}{one_backward} "
        f"(%lr: !zero.value<f64>{max_norm}{tokens}) {{\n"
        f"  {results('g')} = zero.micro_batches in {options.accumulator} {{\n"
        f"    {results('d')} = zero.backward("
        f"{', '.join(one.name for one in parameters)}) "
        f"prescaled({arrival}){replicated} : {arriving}\n"
        f"    zero.yield {values('d')} : {arriving}\n  }}\n"
    )
    for name in scheduled:
        out.write(f"  %{name}_now = zero.read_schedule @{name}\n")
    partial = types(lambda one: one.type(options.accumulator, one.partial, scaled))
    wire = f" reduce_dtype {options.reduce_dtype}" * bool(options.reduce_dtype)
    out.write(f"  {results('r')} = zero.reduce {values('g')}{wire} : {partial}\n")
    # One norm over all gradients, or one a group, or these and then one over all that is
    # clipped, with the norm of the result.
    rounds = {"all": [[everyone]], "group": [groups], "both": [groups, [everyone]]}
    now = [f"%r#{i}" if len(parameters) > 1 else "%r" for i in everyone]
    names = []

    def write_norm(members):
        names.append(f"norm{len(names)}")
        taken = ", ".join(now[i] for i in members)
        out.write(f"  %{names[-1]} = zero.norm {taken} : {final(members)}\n")
        return taken

    for members in [members for each in rounds[options.norm] for members in each]:
        taken = write_norm(members)
        if options.max_norm:
            clip = f"%c{len(names) - 1}"
            count = f":{len(members)}" * (len(members) > 1)
            out.write(
                f"  {clip}{count} = zero.clip {taken} by %{names[-1]} "
                f"max {clips_to} : {final(members)} by !zero.value<f64>\n"
            )
            for position, i in enumerate(members):
                now[i] = f"{clip}#{position}" if len(members) > 1 else clip
    if options.norm == "both":
        write_norm(everyone)
    for group, members in enumerate(groups):
        optimizer = optimizers[group % len(optimizers)]
        gradients = ", ".join(now[i] for i in members)
        own = next((n for n in (f"lr{group}", "lr") if n in scheduled), None)
        hyper = [f"lr = %{own}_now" if own else "lr = %lr"]
        if "wd" in scheduled and group % 2 == 0:
            hyper.append("wd = %wd_now")
        else:
            hyper.append(f"wd = {0.0 if group % 2 else 0.1}")
        f64s = ", ".join("!zero.value<f64>" for value in hyper if "%" in value)
        out.write(
            f"  zero.update @group{group} with @{optimizer.stem}({gradients}) "
            f"hyper({', '.join(hyper)}) : ({final(members)}), ({f64s})\n"
        )
    if tokens:
        out.write(f"  %total = zero.reduce %tokens : !zero.value<f64{counts}>\n")
        names.append("total")
    reported = [f"%{name}" for name in names] + [f"%{name}_now" for name in scheduled]
    f64s = ", ".join("!zero.value<f64>" for _ in reported)
    out.write(
        f"  zero.return [{', '.join(names + scheduled)}] "
        f"{', '.join(reported)} : {f64s}\n}}\n"
    )


def read_mesh(options):
    """Sizes by axis."""
    if not options.mesh:
        return {"dp": options.ranks}
    pairs = (pair.split("=") for pair in options.mesh.split(","))
    return {axis: int(size) for axis, size in pairs}


def cut_units(parameters, units):
    """The parameters of each unit. The last parameters are of no unit if the units do not
    divide them."""
    size = parameters // max(units, 1)
    return [range(unit * size, (unit + 1) * size) for unit in range(units)]


def differ(one, other, everywhere):
    """Whether two orders of units begin with different units on each pipeline stage, or are
    the same there."""
    for stage in {stage for stages in everywhere for stage in stages}:
        here = [[unit for unit in order if stage in everywhere[unit]] for order in (one, other)]
        if here[0][:1] == here[1][:1] and here[0] != here[1]:
            return False
    return True


def split_units(units, place_of):
    """|units|, with one for each place that has parameters of a unit."""
    places = [(unit, place_of(i), i) for unit, members in enumerate(units) for i in members]
    split = {}
    for unit, place, i in places:
        split.setdefault((unit, place), []).append(i)
    return list(split.values())


def numbers(text):
    return [int(number) for number in text.split(",") if number]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=4)
    parser.add_argument("--sizes", default="0,1,33,100,7,4097", help="elements on one rank, in turn")
    parser.add_argument("--ranks", type=int, default=2, help="short for --mesh dp=N")
    parser.add_argument("--mesh", default="", help="such as edp=2,ep=2,cp=1,tp=2")
    parser.add_argument(
        "--classes", default="dense", help=f"taken in turn: {', '.join(CLASSES)}"
    )
    parser.add_argument("--dtype", default="bf16", help="type of parameters")
    parser.add_argument("--gradient", default="bf16", help="type of arriving gradients")
    parser.add_argument("--accumulator", default="f32")
    parser.add_argument("--reduce-dtype", default="", help="type of addends in a reduction")
    parser.add_argument(
        "--gather-dtype", default="", help="type in which parameters of units travel"
    )
    parser.add_argument(
        "--normalize",
        choices=["mean", "raw", "averaged", "sum", "tokens"],
        default="mean",
        help="of a contribution; raw: a mean of gradients that arrive as they are; "
        "averaged: callers divide by ranks, too; "
        "tokens: divided by what all ranks count",
    )
    parser.add_argument("--optional", default="", help="optional parameters, such as 0,3")
    parser.add_argument(
        "--tied", default="", help="parameters on the first and the last pipeline stage"
    )
    parser.add_argument(
        "--activations", action="store_true", help="each pipeline stage sends one to the next"
    )
    parser.add_argument("--used-twice", default="", help="parameters with two uses")
    parser.add_argument("--used-any", default="", help="parameters with any number of uses")
    parser.add_argument("--one-backward", action="store_true", help="a step has one backward pass")
    parser.add_argument(
        "--nonfinite", choices=["skip", "apply", "error"], default="skip"
    )
    parser.add_argument(
        "--loss-scale", default="", help=".mlir file of the scale of the loss"
    )
    parser.add_argument(
        "--schedule",
        nargs="+",
        default=[],
        help=".mlir files of schedules @lr and @wd, or @lr0, @lr1, ... by group; the step "
        "reports them",
    )
    parser.add_argument(
        "--max-norm", type=lambda text: text if text == "input" else float(text),
        default=1.0, help="a number, 'input' for an argument of the step, or 0: no clipping",
    )  # fmt: skip
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument(
        "--units", type=int, default=0, help="units of consecutive parameters, for stage 3"
    )
    parser.add_argument(
        "--unit-orders", type=int, default=0,
        help="orders of the units, other than that of the step (at most as many as units)",
    )  # fmt: skip
    parser.add_argument(
        "--frozen", type=int, default=0, help="frozen parameters of each unit"
    )
    parser.add_argument(
        "--absent", choices=["zero", "skip"], default="zero",
        help="skip: groups of optional parameters are skipped if their gradients are absent",
    )  # fmt: skip
    parser.add_argument(
        "--norm", choices=["all", "group", "both"], default="all",
        help="gradients of a norm and a clip; both: each group, then all that is clipped",
    )  # fmt: skip
    parser.add_argument(
        "--optimizer", nargs="+", required=True, help=".mlir files, one per group, in turn"
    )
    options = parser.parse_args()
    options.units = cut_units(options.parameters, options.units)
    write_step(options, sys.stdout)


if __name__ == "__main__":
    main()
