#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a logical step with many parameters, for tests and benchmarks.

  make_step.py --parameters 46000 --optimizer examples/optimizers/adamw.mlir

Sizes go round a list with empty, 1-element and odd tensors. Parameters are dealt out
to groups, of which every second one is without decay.
"""

import argparse
import pathlib
import sys


def write_step(options, out):
    sizes = [int(size) for size in options.sizes.split(",")]
    shapes = [sizes[i % len(sizes)] for i in range(options.parameters)]
    names = [f"@layer{i}.weight" for i in range(options.parameters)]
    optimizers = [pathlib.Path(file) for file in options.optimizer]

    out.write(f'zero.mesh @cluster <["dp" = {options.ranks}]>\n')
    optional = numbers(options.optional)
    uses = numbers(options.used_twice)
    for i, (name, size) in enumerate(zip(names, shapes)):
        flags = " optional" * (i in optional) + " uses 2" * (i in uses)
        out.write(f"zero.parameter {name} : {size}x{options.dtype}{flags}\n")
    count = min(options.groups, options.parameters)
    groups = [range(group, options.parameters, count) for group in range(count)]
    for group, members in enumerate(groups):
        listed = ", ".join(names[i] for i in members)
        out.write(f"zero.group @group{group} [{listed}]\n")
    for optimizer in dict.fromkeys(optimizers):
        out.write(optimizer.read_text())

    def types(dtype, suffix, members=range(options.parameters)):
        return ", ".join(f"!zero.value<{shapes[i]}x{dtype}{suffix}>" for i in members)

    def values(name, members=range(options.parameters)):
        one = options.parameters == 1
        return ", ".join(f"%{name}" if one else f"%{name}#{i}" for i in members)

    def results(name):
        count = options.parameters
        return f"%{name}" if count == 1 else f"%{name}:{count}"

    # What is left to divide by stands in the types.
    scaled = {
        "mean": ", scaled = [dp : 1]",
        "raw": ", scaled = [accumulation : 1, dp : 1]",
        "sum": "",
    }[options.weight]
    weight = "" if options.weight == "sum" else "accumulation : -1, dp : -1"
    arrival = "accumulation : -1" if options.weight == "mean" else ""
    nonfinite = f" nonfinite {options.nonfinite}" * (options.nonfinite != "skip")
    arriving = types(options.gradient, ", partial = [dp, micro]" + scaled)
    out.write(
        f"zero.step @train on @cluster weight({weight}){nonfinite} "
        "(%lr: !zero.value<f64>) {\n"
        f"  {results('g')} = zero.micro_batches in {options.accumulator} {{\n"
        f"    {results('d')} = zero.backward({', '.join(names)}) "
        f"arrives({arrival}) : {arriving}\n"
        f"    zero.yield {values('d')} : {arriving}\n  }}\n"
    )
    partial = types(options.accumulator, ", partial = [dp]" + scaled)
    out.write(f"  {results('r')} = zero.reduce {values('g')} : {partial}\n")
    # One norm over all gradients, or one a group.
    normed = groups if options.norm == "group" else [range(options.parameters)]
    clipped = {}
    for k, members in enumerate(normed):
        final = types(options.accumulator, "", members)
        out.write(f"  %norm{k} = zero.norm {values('r', members)} : {final}\n")
        for position, i in enumerate(members):
            clipped[i] = f"%c{k}#{position}" if len(members) > 1 else f"%c{k}"
        if options.max_norm > 0:
            count = f":{len(members)}" * (len(members) > 1)
            out.write(
                f"  %c{k}{count} = zero.clip {values('r', members)} by %norm{k} "
                f"max {options.max_norm} : {final} by !zero.value<f64>\n"
            )
    for group, members in enumerate(groups):
        optimizer = optimizers[group % len(optimizers)]
        gradients = values("r", members)
        if options.max_norm > 0:
            gradients = ", ".join(clipped[i] for i in members)
        out.write(
            f"  zero.update @group{group} with @{optimizer.stem}({gradients}) "
            f"hyper(lr = %lr, wd = {0.0 if group % 2 else 0.1}) : "
            f"({types(options.accumulator, '', members)}), (!zero.value<f64>)\n"
        )
    names = ", ".join(f"norm{k}" for k in range(len(normed)))
    norms = ", ".join(f"%norm{k}" for k in range(len(normed)))
    f64s = ", ".join("!zero.value<f64>" for _ in normed)
    out.write(f"  zero.return [{names}] {norms} : {f64s}\n}}\n")


def numbers(text):
    return {int(number) for number in text.split(",") if number}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=4)
    parser.add_argument("--sizes", default="0,1,33,100,7,4097")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--dtype", default="bf16", help="of parameters")
    parser.add_argument("--gradient", default="bf16", help="as it arrives")
    parser.add_argument("--accumulator", default="f32")
    parser.add_argument(
        "--weight",
        choices=["mean", "raw", "sum"],
        default="mean",
        help="of a contribution; raw: a mean of gradients that arrive as they are",
    )
    parser.add_argument("--optional", default="", help="which parameters, e.g. 0,3")
    parser.add_argument("--used-twice", default="", help="which parameters")
    parser.add_argument(
        "--nonfinite", choices=["skip", "poison", "error"], default="skip"
    )
    parser.add_argument("--max-norm", type=float, default=1.0, help="0: no clipping")
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--norm", choices=["all", "group"], default="all", help="of what")
    parser.add_argument(
        "--optimizer", nargs="+", required=True, help=".mlir files, one a group, in turn"
    )
    write_step(parser.parse_args(), sys.stdout)


if __name__ == "__main__":
    main()
