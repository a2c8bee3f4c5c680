#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the plan of GPT-2 small at stage 3 with a closed form: units_plan.py BIN RANKS

Each of the 12 blocks is a unit. The embeddings and the last layer norm are of no unit.
Pads are the difference. The same for adapters of rank 8 beside frozen blocks: then the
caller keeps what is of no unit.
"""

import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[3]
BLOCKS = 12
WIDTH = 768
UNIT = 12 * WIDTH * WIDTH + 13 * WIDTH  # of one block
REST = 50257 * WIDTH + 1024 * WIDTH + 2 * WIDTH
ADAPTERS = 8 * (WIDTH + 3 * WIDTH)  # of one block
BF16, F32 = 2, 4
MOST_PADS = 0.001
SCALARS = 128  # the bytes of a scalar all-reduce, at most


@dataclass
class Model:
    """Elements that are trained and frozen in each unit, and trained in none."""

    units: int
    trained: int
    frozen: int
    rest: int

    def unit(self):
        return self.trained + self.frozen

    def all_trained(self):
        return self.units * self.trained + self.rest


FULL, LORA = Model(BLOCKS, UNIT, 0, REST), Model(BLOCKS, ADAPTERS, UNIT, 0)


def narrow(step):
    """|step| with parameters and gradients in f32, of which units travel in bf16."""
    return re.sub(r"(zero\.unit [^]]*\])", r"\1 gather_dtype bf16", step.replace("bf16", "f32"))


def plan_of(binaries, ranks, model, offload="none", reduce="backward", ahead=None, change=None):
    options = ["--units"] + ["--lora=8"] * (model is LORA)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "step.mlir"
        with open(file, "w") as out:
            subprocess.run([sys.executable, ROOT / "examples/gpt2.py", *options], stdout=out, check=True)
        if change:
            file.write_text(change(file.read_text()))
        command = [pathlib.Path(binaries) / "zero-compile", file, f"--mesh=dp={ranks}", "--stage=3", f"--offload={offload}",
                   f"--reduce={reduce}", "-o", folder]
        if ahead is not None:
            command += ["--unit-order=declared", f"--prefetch-units={ahead}"]
        subprocess.run(command, check=True, capture_output=True)
        return json.loads((pathlib.Path(folder) / "train.plan.json").read_text())


def compare(plan, ranks, model, ahead=1):
    """Prints |plan|, and the numbers that differ from those of |model|, of which |ahead|
    units are gathered ahead. Returns how many differ."""
    unit, rest, trained = model.unit(), model.rest, model.all_trained()
    planned = plan["bytes_per_rank"]["several_backwards"]["device"]
    expected = {
        # Slices of units, unsharded units, and what is of no unit.
        "parameter": BF16 * (model.units * unit / ranks + (ahead + 1) * unit + rest),
        # Two units whose gradients arrive, and those of no unit.
        "gradient": BF16 * (2 * model.trained + rest),
        "accumulator": F32 * trained / ranks,
        "state": 3 * F32 * trained / ranks,
    }
    wrong = 0
    for role, bytes_ in expected.items():
        pads = planned[role] / bytes_ - 1
        isRight = 0 <= pads < MOST_PADS
        wrong += not isRight
        print(f"{role:12} {planned[role]:12} planned  {100 * pads:6.3f} % pads{'' if isRight else '  WRONG'}")
    traffic = plan["traffic_per_rank"]
    counts = (traffic["unshard_all"]["all_gathers"], traffic["first_backward"]["reduce_scatters"],
              traffic["apply"]["scalar_all_reduces"], traffic["apply"]["all_gathers"])
    print("gathers of units, reductions, scalar all-reduces, gathers at apply:", *counts)
    sent = {
        "unshard_all": BF16 * model.units * unit,
        "first_backward": BF16 * trained,
        "apply": BF16 * rest,
    }
    for when, bytes_ in sent.items():
        least = bytes_ * (ranks - 1) / ranks  # of a ring
        most = least * (1 + MOST_PADS) + SCALARS
        isRight = least * (1 - 1e-6) <= traffic[when]["bytes_sent"] <= most
        wrong += not isRight
        print(f"{when:15} {traffic[when]['bytes_sent']:12} sent{'' if isRight else f'  WRONG: expected {math.ceil(least)}'}")
    return wrong


def compare_offload(plan, ranks, model):
    """The same for slices of units on the host, beside what the update of the rest writes
    there. Each gather of a unit copies this rank's slice to the device."""
    planned = plan["bytes_per_rank"]["several_backwards"]
    unit, rest = model.unit(), model.rest
    rows = {
        "on the device": (planned["device"]["parameter"], BF16 * (2 * unit + rest)),
        "on the host": (planned["host"]["parameter"], BF16 * (model.units * unit + rest) / ranks),
        "copied": (plan["traffic_per_rank"]["unshard_all"]["bytes_copied_between_spaces"],
                   BF16 * model.units * unit / ranks),
    }
    wrong = 0
    for what, (bytes_, expected) in rows.items():
        isRight = 0 <= bytes_ / expected - 1 < MOST_PADS
        wrong += not isRight
        print(f"parameters {what:14} {bytes_:12}{'' if isRight else f'  WRONG: expected {math.ceil(expected)}'}")
    return wrong


def compare_narrow(plan, ranks, offload):
    """The same for parameters in f32 that travel in bf16. What travels has memory of its own:
    that of the largest unit, and on the host that of all slices."""
    planned = plan["bytes_per_rank"]["several_backwards"]
    gathered = plan["traffic_per_rank"]["unshard_all"]
    units, is_offloaded = BLOCKS * UNIT, offload != "none"
    on_device = F32 * (2 * UNIT + REST) + BF16 * UNIT
    on_host = (F32 + BF16) * units / ranks
    rows = {
        "on the device": (planned["device"]["parameter"],
                          on_device + (0 if is_offloaded else F32 * units / ranks)),
        "on the host": (planned["host"]["parameter"], on_host if is_offloaded else 0),
        "copied": (gathered["bytes_copied_between_spaces"],
                   BF16 * units / ranks if is_offloaded else 0),
        "sent": (gathered["bytes_sent"], BF16 * units * (ranks - 1) / ranks),
    }
    wrong = 0
    for what, (bytes_, expected) in rows.items():
        isRight = expected <= bytes_ + 1 and bytes_ <= expected * (1 + MOST_PADS)
        wrong += not isRight
        print(f"narrow {offload} {what:14} {bytes_:12}{'' if isRight else f'  WRONG: expected {math.ceil(expected)}'}")
    return wrong


def compare_deferred(plan, ranks, model):
    """The same for gradients that are reduced once a step: whole sums in f32."""
    planned = plan["bytes_per_rank"]["several_backwards"]["device"]
    sent = {when: one["bytes_sent"] for when, one in plan["traffic_per_rank"].items()}
    others = (ranks - 1) / ranks
    rows = {
        "accumulator": (planned["accumulator"], F32 * model.all_trained()),
        "gradient": (planned["gradient"], F32 * model.all_trained() / ranks),
        "backward": (sent["first_backward"] + sent["each_later_backward"], 0),
        "apply": (sent["apply"], others * (F32 * model.all_trained() + BF16 * model.rest)),
    }
    wrong = 0
    for what, (bytes_, expected) in rows.items():
        isRight = expected <= bytes_ + 1 and bytes_ <= expected * (1 + MOST_PADS) + SCALARS
        wrong += not isRight
        print(f"at apply {what:14} {bytes_:12}{'' if isRight else f'  WRONG: expected {math.ceil(expected)}'}")
    return wrong


def main():
    binaries, ranks = sys.argv[1], int(sys.argv[2])
    wrong = 0
    for model in (FULL, LORA):
        wrong += compare(plan_of(binaries, ranks, model), ranks, model)
        wrong += compare_offload(plan_of(binaries, ranks, model, "parameters"), ranks, model)
    for ahead in (0, 2):
        print(f"{ahead} units ahead:")
        wrong += compare(plan_of(binaries, ranks, FULL, ahead=ahead), ranks, FULL, ahead)
    wrong += compare_deferred(plan_of(binaries, ranks, FULL, reduce="apply"), ranks, FULL)
    for offload in ("none", "parameters"):
        wrong += compare_narrow(plan_of(binaries, ranks, FULL, offload, change=narrow), ranks, offload)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
