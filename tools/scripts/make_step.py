#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a logical step with many parameters, for tests and benchmarks.

  make_step.py --parameters 46000 --optimizer examples/optimizers/adamw.mlir

Sizes go round a list with empty, 1-element and odd tensors; every third parameter
is without decay.
"""

import argparse
import pathlib
import sys


def write_step(options, out):
    sizes = [int(size) for size in options.sizes.split(",")]
    shapes = [sizes[i % len(sizes)] for i in range(options.parameters)]
    names = [f"@layer{i}.weight" for i in range(options.parameters)]
    optimizer = pathlib.Path(options.optimizer)
    hyper = "hyper(lr = %lr)"
    decay = "hyper(lr = %lr, wd = 0.1)"

    out.write(f'zero.mesh @cluster <["dp" = {options.ranks}]>\n')
    for name, size in zip(names, shapes):
        out.write(f"zero.parameter {name} : {size}x{options.dtype}\n")
    groups = {"decay": [], "no_decay": []}
    for i in range(options.parameters):
        groups["no_decay" if i % 3 == 2 else "decay"].append(i)
    groups = {group: members for group, members in groups.items() if members}
    for group, members in groups.items():
        listed = ", ".join(names[i] for i in members)
        out.write(f"zero.group @{group} [{listed}]\n")
    out.write(optimizer.read_text())

    def types(dtype, suffix, members=range(options.parameters)):
        return ", ".join(f"!zero.value<{shapes[i]}x{dtype}{suffix}>" for i in members)

    def values(name, members=range(options.parameters)):
        one = options.parameters == 1
        return ", ".join(f"%{name}" if one else f"%{name}#{i}" for i in members)

    def results(name):
        count = options.parameters
        return f"%{name}" if count == 1 else f"%{name}:{count}"

    mean = options.weight == "mean"
    scaled = ", scaled = [dp : 1]" if mean else ""
    weight = "accumulation : -1, dp : -1" if mean else ""
    arrival = "accumulation : -1" if mean else ""
    arriving = types(options.gradient, ", partial = [dp, micro]" + scaled)
    out.write(
        f"zero.step @train on @cluster weight({weight}) "
        "(%lr: !zero.value<f64>) {\n"
        f"  {results('g')} = zero.micro_batches in {options.accumulator} {{\n"
        f"    {results('d')} = zero.backward({', '.join(names)}) "
        f"arrives({arrival}) : {arriving}\n"
        f"    zero.yield {values('d')} : {arriving}\n  }}\n"
    )
    partial = types(options.accumulator, ", partial = [dp]" + scaled)
    final = types(options.accumulator, "")
    out.write(
        f"  {results('r')} = zero.reduce {values('g')} : {partial}\n"
        f"  %norm = zero.norm {values('r')} : {final}\n"
        f"  {results('c')} = zero.clip {values('r')} by %norm max 1.0 : "
        f"{final} by !zero.value<f64>\n"
    )
    for group, members in groups.items():
        out.write(
            f"  zero.update @{group} with @{optimizer.stem}({values('c', members)}) "
            f"{decay if group == 'decay' else hyper_of(optimizer, hyper)} : "
            f"({types(options.accumulator, '', members)}), (!zero.value<f64>)\n"
        )
    out.write("  zero.return [norm] %norm : !zero.value<f64>\n}\n")


def hyper_of(optimizer, hyper):
    # AdamW's decay has no default.
    return "hyper(lr = %lr, wd = 0.0)" if optimizer.stem == "adamw" else hyper


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=4)
    parser.add_argument("--sizes", default="0,1,33,100,7,4097")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--dtype", default="bf16", help="of parameters")
    parser.add_argument("--gradient", default="bf16", help="as it arrives")
    parser.add_argument("--accumulator", default="f32")
    parser.add_argument(
        "--weight", choices=["mean", "sum"], default="mean", help="of a contribution"
    )
    parser.add_argument("--optimizer", required=True, help="an .mlir file")
    write_step(parser.parse_args(), sys.stdout)


if __name__ == "__main__":
    main()
