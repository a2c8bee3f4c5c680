#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs imported steps with each of DeepSpeed's schedules, and compares the learning
rates with the formulas of DeepSpeed 0.19.6, computed with Python's math.

usage: deepspeed_schedules.py BIN [--break]

--break compares with formulas that are late by a step."""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

STEPS = 24
LR = 3e-4


def get_ramp(i, warmup, kind):
    if kind == "log":
        return math.log(i + 1) / math.log(warmup)
    return i / warmup


def warmup_rate(i, p, decays):
    # null is the rate of the optimizer, and the default of WarmupLR only.
    low, high = p.get("warmup_min_lr", 0), p.get("warmup_max_lr", 1e-3 if decays else LR)
    high = LR if high is None else high
    warmup = max(2, p["warmup_num_steps"])
    if i < 0:
        return low
    if i < warmup:
        gamma = get_ramp(i, warmup, p.get("warmup_type", "log"))
    elif decays:
        total = p["total_num_steps"]
        gamma = max(0.0, (total - i) / max(1.0, total - warmup))
    else:
        gamma = 1.0
    return low + (high - low) * gamma


def cosine_rate(i, p):
    warmup = max(2, p["warmup_num_steps"])
    floor = p.get("cos_min_ratio", 1e-4)
    if i < 0:
        return 0.0
    if i < warmup:
        low = p.get("warmup_min_ratio", 0)
        return LR * (low + (1 - low) * get_ramp(i, warmup, p.get("warmup_type", "log")))
    length = max(1, p["total_num_steps"] - warmup)
    part = min(1.0, (i - warmup + 1) / length)
    return LR * max(0.0, floor + (1 - floor) * (1 + math.cos(math.pi * part)) / 2)


def range_rate(i, p):
    part = (i + 1) / p["lr_range_test_step_size"]
    return p["lr_range_test_min_lr"] * (1 + p.get("lr_range_test_step_rate", 1) * part)


def get_scale(i, p):
    first = p["cycle_first_step_size"]
    total = first + (p.get("cycle_second_step_size") or first)
    x = math.fmod((i + 1) / total, 1.0)
    return x / (first / total) if x <= first / total else (x - 1) / (first / total - 1)


def cycle_rate(i, p):
    """Of the rate, and of beta1."""
    first = p["cycle_first_step_size"]
    total = first + (p.get("cycle_second_step_size") or first)
    low, high = p["cycle_min_lr"], p["cycle_max_lr"]
    least, most = p.get("cycle_min_mom", 0.8), p.get("cycle_max_mom", 0.9)
    if i < 0:
        return low, least
    if i < total:
        scale = get_scale(i, p)
        return low + (high - low) * scale, most - (most - least) * scale
    size = p.get("decay_step_size", 0)
    part = (i - total + 1) / size if size else 0
    grown = most * (1 + p.get("decay_mom_rate", 0) * part)
    return low / (1 + p.get("decay_lr_rate", 0) * part), grown


CASES = [
    ("WarmupLR", {"warmup_num_steps": 10}),
    ("WarmupLR", {"warmup_num_steps": 1, "warmup_min_lr": 1e-5}),
    ("WarmupLR", {"warmup_num_steps": 100000, "warmup_max_lr": 0.5}),
    ("WarmupLR", {"warmup_num_steps": 7, "warmup_type": "linear", "warmup_max_lr": 1}),
    ("WarmupDecayLR", {"warmup_num_steps": 5, "total_num_steps": 15, "warmup_max_lr": 2}),
    ("WarmupLR", {"warmup_num_steps": 10, "warmup_max_lr": None}),
    ("WarmupDecayLR", {"warmup_num_steps": 5, "total_num_steps": 15}),
    (
        "WarmupDecayLR",
        {"warmup_num_steps": 5, "total_num_steps": 15, "warmup_max_lr": None},
    ),
    (
        "WarmupDecayLR",
        {
            "warmup_num_steps": 3,
            "total_num_steps": 2,
            "warmup_min_lr": 0.1,
            "warmup_max_lr": 1,
            "warmup_type": "linear",
        },
    ),
    ("WarmupCosineLR", {"warmup_num_steps": 4, "total_num_steps": 18}),
    (
        "WarmupCosineLR",
        {
            "warmup_num_steps": 4,
            "total_num_steps": 18,
            "warmup_min_ratio": 0.2,
            "cos_min_ratio": 0.1,
            "warmup_type": "linear",
        },
    ),
    (
        "OneCycle",
        {
            "cycle_min_lr": 0.1,
            "cycle_max_lr": 1,
            "cycle_first_step_size": 5,
            "cycle_second_step_size": None,
        },
    ),
    (
        "OneCycle",
        {
            "cycle_min_lr": 0.1,
            "cycle_max_lr": 1,
            "cycle_first_step_size": 7,
            "cycle_second_step_size": 4,
            "decay_step_size": 3,
            "decay_lr_rate": 0.5,
            "cycle_min_mom": 0.5,
            "cycle_max_mom": 0.6,
            "decay_mom_rate": 0.03,
        },
    ),
    ("LRRangeTest", {"lr_range_test_min_lr": 1e-4, "lr_range_test_step_size": 5}),
]


def get_rate(kind, i, p):
    if kind == "WarmupCosineLR":
        return cosine_rate(i, p)
    if kind == "LRRangeTest":
        return range_rate(i, p)
    if kind == "OneCycle":
        return cycle_rate(i, p)[0]
    return warmup_rate(i, p, kind == "WarmupDecayLR")


def run(folder, tools, kind, parameters):
    config = {
        "optimizer": {"type": "AdamW", "params": {"lr": LR}},
        "scheduler": {"type": kind, "params": parameters},
    }
    (folder / "ds.json").write_text(json.dumps(config))
    (folder / "model.json").write_text('[{"name": "w", "shape": [3]}]')
    subprocess.run(
        [
            tools / "zero-translate",
            "--import-deepspeed=ds.json",
            "--model=model.json",
            "-o",
            "s.mlir",
        ],
        cwd=folder,
        check=True,
    )
    command = [tools / "zero-run", "s.mlir", f"--steps={STEPS}", "--json"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    steps = json.loads(done.stdout)["steps"]
    return [step["reported"] for step in steps]


def main(tools, shift=0):
    with tempfile.TemporaryDirectory() as folder:
        for kind, parameters in CASES:
            rates = run(pathlib.Path(folder), pathlib.Path(tools), kind, parameters)
            for i, reported in enumerate(rates):
                wanted = {"lr": get_rate(kind, i - 1 + shift, parameters)}
                if kind == "OneCycle":
                    wanted["beta1"] = cycle_rate(i - 1 + shift, parameters)[1]
                for name, expected in wanted.items():
                    got = reported[name]
                    if abs(got - expected) > 4e-15 * max(abs(expected), 1e-12 * LR):
                        place = f"{kind} {parameters}: step {i + 1}"
                        print(f"{place}: {name} {got}, not {expected}")
                        return 1
    print(f"{len(CASES)} schedules of {STEPS} steps: equal")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], -1 if "--break" in sys.argv else 0))
