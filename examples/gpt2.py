#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the training step of GPT-2, with the names and shapes of its checkpoint.

  python3 examples/gpt2.py                      examples/gpt2_small.mlir
  python3 examples/gpt2.py --width 48           the same step with small matrices
  python3 examples/gpt2.py --train 'h[.]1[01]'  these parameters, the others frozen
  python3 examples/gpt2.py --lora 8             adapters of rank 8, all else frozen
  python3 examples/gpt2.py --units              a unit for each layer, for stage 3

For another model, replace parameters_of() by its list of names and shapes.
"""

import argparse
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
ABOUT = """\
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step of GPT-2: {trained} of {parameters} parameters, {elements} elements. Data-parallel
// ranks, AdamW with weight decay on matrices only, all gradients clipped to a norm of 1,
// the mean over backward passes and ranks. Written by examples/gpt2.py; docs/tutorial.md
// explains each part.
//
// The output projection is tied to @wte.weight: autograd delivers one gradient.

"""


def parameters_of(options):
    """Names and shapes of the model, in the order of its layers."""
    width = options.width
    found = [
        ("wte.weight", [options.vocabulary, width]),
        ("wpe.weight", [options.positions, width]),
    ]
    for i in range(options.layers):
        found += [
            (f"h.{i}.ln_1.weight", [width]),
            (f"h.{i}.ln_1.bias", [width]),
            (f"h.{i}.attn.c_attn.weight", [width, 3 * width]),
            (f"h.{i}.attn.c_attn.bias", [3 * width]),
        ]
        if options.lora:
            found += [
                (f"h.{i}.attn.c_attn.lora_a", [width, options.lora]),
                (f"h.{i}.attn.c_attn.lora_b", [options.lora, 3 * width]),
            ]
        found += [
            (f"h.{i}.attn.c_proj.weight", [width, width]),
            (f"h.{i}.attn.c_proj.bias", [width]),
            (f"h.{i}.ln_2.weight", [width]),
            (f"h.{i}.ln_2.bias", [width]),
            (f"h.{i}.mlp.c_fc.weight", [width, 4 * width]),
            (f"h.{i}.mlp.c_fc.bias", [4 * width]),
            (f"h.{i}.mlp.c_proj.weight", [4 * width, width]),
            (f"h.{i}.mlp.c_proj.bias", [width]),
        ]
    return found + [("ln_f.weight", [width]), ("ln_f.bias", [width])]


def dims(shape):
    return "x".join(map(str, shape))


def rows(items, indent):
    """Six items in a row."""
    lines = [", ".join(items[i : i + 6]) for i in range(0, len(items), 6)]
    return f",\n{indent}".join(lines)


def write_units(parameters, out):
    """A unit for each layer."""
    layers = {}
    for name, _ in parameters:
        if layer := re.match(r"h\.\d+", name):
            layers.setdefault(layer[0], []).append(f"@{name}")
    for layer, names in layers.items():
        out.write(f"zero.unit @{layer} [\n  {rows(names, '  ')}]\n")


def write_step(parameters, trained, has_units, out):
    """Writes a step that updates |trained|; other parameters are frozen."""
    elements = 0
    for name, shape in parameters:
        count = 1
        for extent in shape:
            count *= extent
        elements += count
    out.write(
        ABOUT.format(
            trained=len(trained), parameters=len(parameters), elements=elements
        )
    )
    out.write('zero.mesh @cluster <["dp" = 4]>\n\n')
    for name, shape in parameters:
        frozen = " frozen" * ((name, shape) not in trained)
        out.write(f"zero.parameter @{name} : {dims(shape)}xbf16{frozen}\n")
    if has_units:
        write_units(parameters, out)

    # A group without members is left out.
    decay = [i for i, (_, shape) in enumerate(trained) if len(shape) > 1]
    rest = [i for i, (_, shape) in enumerate(trained) if len(shape) == 1]
    groups = [("decay", 0.1, decay), ("no_decay", 0.0, rest)]
    groups = [group for group in groups if group[2]]
    out.write("\n")
    for group, _, members in groups:
        names = rows([f"@{trained[i][0]}" for i in members], "  ")
        out.write(f"zero.group @{group} [\n  {names}]\n")
    optimizer = (FOLDER / "optimizers/adamw.mlir").read_text()
    out.write("\n" + optimizer[optimizer.index("// AdamW") :])

    # One name for each shape.
    shapes = list(dict.fromkeys(dims(shape) for _, shape in trained))
    out.write(
        "\n// !d: a gradient as a backward pass delivers it, an addend over ranks and"
        "\n// micro-batches, still to be divided by the number of ranks. !s: the sum over"
        "\n// the backward passes, in f32. !g: the sum over the ranks, divided.\n"
    )
    for text in shapes:
        arrives = "partial = [dp, micro], scaled = [dp : 1]"
        out.write(f"!d{text} = !zero.value<{text}xbf16, {arrives}>\n")
    for text in shapes:
        out.write(
            f"!s{text} = !zero.value<{text}xf32, partial = [dp], scaled = [dp : 1]>\n"
        )
    for text in shapes:
        out.write(f"!g{text} = !zero.value<{text}xf32>\n")

    everyone = list(range(len(trained)))

    def values(name, indent, members=everyone):
        one = len(trained) == 1
        return rows([f"%{name}" if one else f"%{name}#{i}" for i in members], indent)

    def types(kind, indent, members=everyone):
        return rows([f"!{kind}{dims(trained[i][1])}" for i in members], indent)

    n = len(trained)
    sources = rows([f"@{name}" for name, _ in trained], " " * 8)
    deep, flat = " " * 8, " " * 6
    out.write(f"""
zero.step @train on @cluster normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {{
  // Once per backward pass. The caller has divided its loss by the number of backward
  // passes.
  %s:{n} = zero.micro_batches in f32 {{
    %d:{n} = zero.backward(
        {sources})
        prescaled(accumulation : -1)
      : {types("d", deep)}
    zero.yield
        {values("d", deep)}
      : {types("d", deep)}
  }}
  %g:{n} = zero.reduce
      {values("s", flat)}
    : {types("s", flat)}
  %norm = zero.norm
      {values("g", flat)}
    : {types("g", flat)}
  %c:{n} = zero.clip
      {values("g", flat)}
    by %norm max 1.0
    : {types("g", flat)}
    by !zero.value<f64>
""")
    for group, wd, members in groups:
        out.write(f"""\
  zero.update @{group} with @adamw(
      {values("c", flat, members)})
    hyper(lr = %lr, wd = {wd})
    : ({types("g", flat, members)}),
      (!zero.value<f64>)
""")
    out.write("  zero.return [norm] %norm : !zero.value<f64>\n}\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--positions", type=int, default=1024)
    parser.add_argument("--lora", type=int, default=0, help="rank of adapters; 0: none")
    parser.add_argument("--units", action="store_true", help="a unit for each layer")
    parser.add_argument(
        "--train", help="regular expression of the parameters that are trained"
    )
    options = parser.parse_args()
    train = options.train or ("[.]lora_[ab]$" if options.lora else "")
    parameters = parameters_of(options)
    trained = [one for one in parameters if re.search(train, one[0])]
    if not trained:
        parser.error(f"--train={train} matches no parameter")
    write_step(parameters, trained, options.units, sys.stdout)


if __name__ == "__main__":
    main()
