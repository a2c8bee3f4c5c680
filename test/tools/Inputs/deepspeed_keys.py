#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports a small configuration for each key of DeepSpeed, and checks that what
becomes of the key is what the table of keys says.

usage: deepspeed_keys.py ZERO_TRANSLATE [KEYS.json]

KEYS.json replaces the table, to see that a wrong row is found."""

import json
import pathlib
import subprocess
import sys
import tempfile

# What a key needs beside it. The first prefix that fits counts.
CONTEXT = [
    ("train_", {"gradient_accumulation_steps": 2}),
    ("gradient_accumulation_steps", {"train_micro_batch_size_per_gpu": 1}),
    ("managed_gradient_accumulation", {"train_micro_batch_size_per_gpu": 1}),
    ("fp16.enabled", {}),
    ("fp16.", {"fp16": {"enabled": True}, "zero_optimization": {"stage": 1}}),
    ("bf16.enabled", {}),
    ("bf16.", {"bf16": {"enabled": True}}),
    ("communication_data_type", {"bf16": {"enabled": True}}),
    ("data_types.", {"bf16": {"enabled": True}}),
    ("optimizer.params.momentum", {"optimizer": {"type": "SGD"}}),
    ("optimizer.params.dampening", {"optimizer": {"type": "SGD"}}),
    ("optimizer.params.nesterov", {"optimizer": {"type": "SGD"}}),
    ("optimizer.params.adam_w_mode", {"optimizer": {"type": "Adam"}}),
    ("optimizer.type", {"optimizer": {"type": "SGD"}}),
    ("zero_optimization.offload_optimizer", {"zero_optimization": {"stage": 1}}),
    ("zero_optimization.cpu_offload", {"zero_optimization": {"stage": 1}}),
    ("zero_optimization.stage3_", {"zero_optimization": {"stage": 3}}),
    ("zero_optimization.offload_param", {"zero_optimization": {"stage": 3}}),
    ("zero_optimization.leaf_module", {"zero_optimization": {"stage": 3}}),
    ("zero_optimization.sub_group_size", {"zero_optimization": {"stage": 3}}),
    ("scheduler.type", {}),
    ("scheduler.params.total", "WarmupDecayLR"),
    ("scheduler.params.warmup_min_ratio", "WarmupCosineLR"),
    ("scheduler.params.cos", "WarmupCosineLR"),
    ("scheduler.params.lr_range", "LRRangeTest"),
    ("scheduler.params.cycle", "OneCycle"),
    ("scheduler.params.decay", "OneCycle"),
    ("scheduler.", "WarmupLR"),
]

# Honoured keys that say what the step does in any case.
SAME = {
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "prescale_gradients",
    "gradient_predivide_factor",
    "tensor_parallel.autotp_size",
    "zero_optimization.offload_param.device",
}


# Defaults of DeepSpeed that an import does not take, or that depend on other keys.
OTHER_DEFAULT = {
    "zero_optimization.reduce_bucket_size",
    "zero_optimization.ignore_unused_parameters",
    "scheduler.params.warmup_max_lr",
}


def get_context(path):
    for prefix, context in CONTEXT:
        if path.startswith(prefix):
            if not isinstance(context, str):
                return context
            block = {"type": context, "params": {}}
            if context in ("WarmupDecayLR", "WarmupCosineLR"):
                block["params"]["total_num_steps"] = 2000
            if context == "OneCycle":
                block["params"] = {"cycle_min_lr": 1, "cycle_max_lr": 2}
                if "rate" in path:
                    block["params"]["decay_step_size"] = 5
                if path.endswith("decay_step_size"):
                    block["params"]["decay_lr_rate"] = 0.5
            return {"scheduler": block}
    return {}


def put(config, path, value):
    *blocks, last = path.split(".")
    for block in blocks:
        config = config.setdefault(block, {})
    config[last] = value


def make(path, value=None, isNull=False):
    config = json.loads(json.dumps(get_context(path)))
    config.setdefault("optimizer", {}).setdefault("type", "AdamW")
    if value is not None or isNull:
        put(config, path, value)
    return config


class Importer:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, pathlib.Path(folder)
        # A layer with a parameter above the threshold of stage 3, and one below it.
        model = [{"name": "h.0.w", "shape": [300, 400]}, {"name": "h.0.b", "shape": [20000]}]
        (self.folder / "model.json").write_text(json.dumps(model))

    mesh = "dp=2"

    def run(self, config):
        """The step without comments, its options, and all of its text."""
        (self.folder / "ds.json").write_text(json.dumps(config))
        command = [self.tool, "--import-deepspeed=ds.json", "--model=model.json"]
        done = subprocess.run(
            command + [f"--mesh={self.mesh}", "--json"],
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        result = json.loads(done.stdout)
        if done.returncode != 0:
            return None, "\n".join(e["message"] for e in result["errors"])
        step = result.pop("step")
        lines = [l for l in step.splitlines() if not l.startswith("//")]
        result.pop("errors", None)
        return (lines, result), step


def check(row, importer):
    """What is wrong with |row|, or None."""
    path = row["key"].replace(".*", ".anything")
    example = json.loads(row["example"])
    importer.mesh = "dp=2:tp=2" if path.endswith("autotp_size") else "dp=2"
    base, text = importer.run(make(path))
    needs = path in ("optimizer.type", "scheduler.params.total_num_steps")
    if base is None and not needs:
        return f"the configuration without the key is refused: {text}"
    got, text = importer.run(make(path, example))
    fate = row["fate"]
    if fate == "refused":
        if got is not None:
            return "the example is accepted"
        if f"'{path}'" not in text:
            return f"the error does not name the key: {text}"
        if not row["default"]:
            return None
        default, text = importer.run(make(path, json.loads(row["default"])))
        return None if default == base else f"the default changes the step: {text}"
    if got is None:
        return f"the example is refused: {text}"
    if fate in ("ignored", "dead"):
        return None if got == base else "the key changes the step"
    if f"// {path} = " not in text:
        return "no comment names the key"
    if path not in SAME and got == base:
        return "the key changes nothing"
    if path in SAME and got != base:
        return "the key changes the step"
    null, text = importer.run(make(path, None, isNull=True))
    if null is None and f"'{path}' is null, " not in text:
        return f"null is refused, and the error does not name the key: {text}"
    # With WarmupLR the default of warmup_max_lr is that of null.
    if null is not None and (null != base or f"// {path} (left out)" in text):
        return "null is neither refused nor the default"
    if row["default"] not in ("", "null") and path not in SAME and not needs:
        default, _ = importer.run(make(path, json.loads(row["default"])))
        if default != base and path not in OTHER_DEFAULT:
            return "the default changes the step"
    return None


def main(tool, table=None):
    if table:
        rows = json.loads(pathlib.Path(table).read_text())
    else:
        command = [tool, "--deepspeed-keys", "--json"]
        rows = json.loads(subprocess.run(command, capture_output=True).stdout)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        importer = Importer(tool, folder)
        for row in rows:
            problem = check(row, importer)
            if problem:
                wrong += 1
                print(f"{row['key']} ({row['fate']}): {problem}")
    fates = [row["fate"] for row in rows]
    counts = ", ".join(f"{fates.count(f)} {f}" for f in sorted(set(fates)))
    print(f"{len(rows)} keys: {counts}; {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
