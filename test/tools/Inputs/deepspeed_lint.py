#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lints a configuration with each problem, and one that is right but for that.

usage: deepspeed_lint.py ZERO_TRANSLATE [--twins]

--twins takes the right configurations for wrong ones."""

import json
import pathlib
import subprocess
import sys
import tempfile

BF16 = {"bf16": {"enabled": True}}
FP16 = {"fp16": {"enabled": True}}
SGD = {"optimizer": {"type": "SGD"}}
SUM = {"data_types": {"grad_accum_dtype": "fp32"}}


def zero(stage, **more):
    return {"zero_optimization": {"stage": stage, **more}}


def offload(stage):
    return zero(stage, offload_optimizer={"device": "cpu"})


def cosine(**parameters):
    return {"scheduler": {"type": "WarmupCosineLR", "params": parameters}}


def cycle(optimizer, **parameters):
    rates = {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-3}
    return {"optimizer": {"type": "AdamW", "params": optimizer},
            "scheduler": {"type": "OneCycle", "params": {**rates, **parameters}}}


def warmup(**parameters):
    return {"scheduler": {"type": "WarmupLR", "params": parameters}}


# Severity, key, part of the text; then a wrong configuration and a right one.
CASES = [
    ("error", "gradient_cliping", "did you mean 'gradient_clipping'", {"gradient_cliping": 1}, {"gradient_clipping": 1}),
    ("error", "zero_optimization.stage", "expected a whole number", zero("two"), zero(2)),
    ("error", "zero_optimization.overlap_comm", "nobody replaces", zero(2, overlap_comm="auto"), zero(2, overlap_comm=True)),
    ("error", "train_batch_size", "times 2 ranks is another number", {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 1}, {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}),
    ("error", "fp16.enabled", "and bf16.enabled is true", {**BF16, **FP16}, FP16),
    ("error", "optimizer.type", "ZeRO has tested", {**SGD, **zero(1)}, {**SGD, **zero(1), "zero_allow_untested_optimizer": True}),
    ("error", "optimizer.type", "does not work with ZeRO", {"optimizer": {"type": "OneBitAdam"}, **zero(1)}, {"optimizer": {"type": "OneBitAdam"}}),
    ("error", "prescale_gradients", "assertion", {"prescale_gradients": True, **zero(1)}, {"prescale_gradients": True, **zero(1, reduce_scatter=False)}),
    ("error", "gradient_predivide_factor", "assertion", {"gradient_predivide_factor": 2, **zero(2)}, {"gradient_predivide_factor": 1, **zero(2)}),
    ("error", "data_types.grad_accum_dtype", "does not implement", {**BF16, **SUM}, {**BF16, **SUM, **zero(1)}),
    ("error", "gradient_allreduce_op", "stage 3 rejects", {"gradient_allreduce_op": "sum", **zero(3)}, {"gradient_allreduce_op": "sum", **zero(2)}),
    ("error", "zero_optimization.offload_param.device", "is for stage 3", zero(2, offload_param={"device": "cpu"}), zero(3, offload_param={"device": "cpu"})),
    ("error", "scheduler.params.total_num_steps", "is missing", {"scheduler": {"type": "WarmupDecayLR"}}, {"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 5000}}}),
    ("warning", "comms_config", "which ignores it", {"comms_config": {}}, {"comms_logger": {}}),
    ("warning", "zero_optimization.allgather_bucket_size", "is dead", zero(2, allgather_bucket_size=5), zero(2, reduce_bucket_size=5)),
    ("warning", "zero_optimization.allgather_partitions", "is dead", zero(2, allgather_partitions=True), zero(2)),
    ("warning", "zero_optimization.cpu_offload", "deprecated", zero(2, cpu_offload=True), offload(2)),
    ("error", "zero_optimization.offload_optimizer.device", "DeepSpeed does not offload", offload(0), offload(1)),
    ("warning", "fp16.hysteresis", "makes the loss scale static", {"fp16": {"enabled": True, "loss_scale": 8, "hysteresis": 1}}, {"fp16": {"enabled": True, "hysteresis": 1}}),
    ("warning", "fp16.hysteresis", "rule without hysteresis", {"fp16": {"enabled": True, "hysteresis": 1}}, {"fp16": {"enabled": True, "hysteresis": 1}, **zero(1)}),
    ("warning", "gradient_predivide_factor", "is not read", {"prescale_gradients": True, "gradient_predivide_factor": 1}, {"gradient_predivide_factor": 1}),
    ("warning", "optimizer.type", "is AdamW", {"optimizer": {"type": "Adam"}}, {"optimizer": {"type": "AdamW"}}),
    ("warning", "optimizer.params.adam_w_mode", "overridden", {"optimizer": {"type": "AdamW", "params": {"adam_w_mode": False}}}, {"optimizer": {"type": "Adam", "params": {"adam_w_mode": False}}}),
    ("warning", "optimizer.params.lr", "overridden", {"optimizer": {"type": "AdamW", "params": {"lr": 1}}, **warmup(warmup_max_lr=2)}, {"optimizer": {"type": "AdamW", "params": {"lr": 2}}, **warmup(warmup_max_lr=2)}),
    ("warning", "scheduler.params.total_num_steps", "less than", {"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 5, "warmup_num_steps": 6}}}, {"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 7, "warmup_num_steps": 6}}}),
    ("warning", "scheduler.params.total_num_steps", "less than", cosine(total_num_steps=5, warmup_num_steps=6), cosine(total_num_steps=7, warmup_num_steps=6)),
    ("warning", "scheduler.params.cos_min_ratio", "is more than 1", cosine(total_num_steps=50, cos_min_ratio=5), cosine(total_num_steps=50, cos_min_ratio=0.5)),
    ("warning", "optimizer.params.lr", "rates of OneCycle", cycle({"lr": 1}), cycle({})),
    ("warning", "optimizer.params.betas", "sets beta2 to 0.99", cycle({"betas": [0.9, 0.95]}), cycle({"betas": [0.9, 0.95]}, cycle_momentum=False)),
    ("warning", "scheduler.params.decay_mom_rate", "diverges", cycle({}, decay_mom_rate=1, decay_step_size=1), cycle({}, decay_mom_rate=1)),
    ("error", "optimizer.type", "expected SGD", {"optimizer": {"type": "sgd"}}, SGD),
    ("error", "communication_data_type", "expected fp32", {"communication_data_type": "float32"}, {"communication_data_type": "FP32"}),
    ("error", "data_types.grad_accum_dtype", "expected fp32", {"data_types": {"grad_accum_dtype": "FP32"}}, {"data_types": {"grad_accum_dtype": "fp32"}}),
    ("error", "gradient_allreduce_op", "expected mean or sum", {"gradient_allreduce_op": "total"}, {"gradient_allreduce_op": "SUM"}),
    ("error", "gradient_allreduce_op", "stage 3 rejects", {"gradient_allreduce_op": "SUM", **zero(3)}, {"gradient_allreduce_op": "SUM", **zero(2)}),
    ("warning", "fp16.min_loss_scale", "raises the scale", {"fp16": {"enabled": True, "min_loss_scale": 131072}}, {"fp16": {"enabled": True, "min_loss_scale": 131072, "initial_scale_power": 17}}),
    ("warning", "bfloat16", "older block", {"bf16": {"enabled": False}, "bfloat16": {"enabled": True}}, {"bfloat16": {"enabled": True}}),
    ("note", "data_types.grad_accum_dtype", "added in bf16", {"bfloat16": {"enabled": True}}, {"bf16": {"enabled": False}, "bfloat16": {"enabled": True}}),
    ("warning", "gradient_clipping", "#8068", {}, {"gradient_clipping": 0}),
    ("warning", "bf16.check_grad_overflow", "#8035", {**BF16, **zero(1)}, {"bf16": {"enabled": True, "check_grad_overflow": True}, **zero(1)}),
    ("warning", "bf16.check_grad_overflow", "#6976", {**BF16, **zero(3)}, {**BF16, **zero(2)}),
    ("error", "zero_optimization.offload_param.device", "add offload_optimizer", zero(3, offload_param={"device": "cpu"}), zero(3, offload_param={"device": "cpu"}, offload_optimizer={"device": "cpu"})),
    ("error", "zero_optimization.stage3_param_persistence_threshold", "expected at least 0", zero(3, stage3_param_persistence_threshold=-1), zero(3, stage3_param_persistence_threshold=0)),
    ("note", "data_types.grad_accum_dtype", "added in bf16", BF16, {**BF16, **SUM}),
    ("note", "communication_data_type", "added in fp16", FP16, {**FP16, "communication_data_type": "fp32"}),
    ("note", "zero_optimization.reduce_bucket_size", "hidden size", zero(2, reduce_bucket_size="auto"), zero(2, reduce_bucket_size=5)),
    ("note", "fp16.loss_scale", "fp16.enabled is false", {"fp16": {"loss_scale": 0}}, {"fp16": {"enabled": True, "loss_scale": 0}}),
    ("note", "bf16.check_grad_overflow", "bf16.enabled is false", {"bf16": {"check_grad_overflow": True}}, {"bf16": {"enabled": True, "check_grad_overflow": True}}),
    ("note", "zero_optimization.stage3_max_live_parameters", "read at stage 3", zero(2, stage3_max_live_parameters=1), zero(3, stage3_max_live_parameters=1)),
    ("warning", "zero_optimization.offload_optimizer", "#7981", offload(2), zero(2)),
    ("warning", "zero_optimization.offload_optimizer", "#6550", {**offload(1), "gradient_accumulation_steps": 4}, {**offload(1), "train_micro_batch_size_per_gpu": 2}),
    ("warning", "data_types.grad_accum_dtype", "#7985", {**BF16, **SUM, **zero(1), "gradient_accumulation_steps": 4}, {**BF16, **SUM, **zero(2), "gradient_accumulation_steps": 4}),
    ("warning", "data_types.grad_accum_dtype", "#5223", {**BF16, **SUM, **zero(1)}, {**BF16, **zero(1)}),
    ("warning", "zero_optimization.stage", "#7718", zero(2), zero(1)),
    ("warning", "zero_optimization.stage", "#8224", {**BF16, **zero(2)}, {**FP16, **zero(2)}),
    ("warning", "bf16.enabled", "#5154", BF16, {**BF16, **zero(1)}),
    ("warning", "bf16.enabled", "#7839", BF16, {**BF16, **zero(1)}),
    ("warning", "bf16.enabled", "#7786", BF16, {**BF16, **zero(1)}),
    ("warning", "fp16.loss_scale", "#2686", FP16, {"fp16": {"enabled": True, "loss_scale": 8}}),
    ("warning", "fp16.enabled", "#7645", FP16, {**FP16, **zero(1)}),
    ("warning", "fp16.enabled", "#7171", FP16, BF16),
    ("warning", "zero_optimization.overlap_comm", "#6993", zero(1, overlap_comm=True), zero(1)),
    ("warning", "zero_optimization.overlap_comm", "#7965", zero(2, overlap_comm=True), zero(1, overlap_comm=True)),
    ("warning", "zero_optimization.reduce_scatter", "#4321", zero(3, reduce_scatter=False), zero(2, reduce_scatter=False)),
    ("warning", "zero_optimization.zero_hpz_partition_size", "#5059", zero(3, zero_hpz_partition_size=8), zero(3)),
    ("warning", "zero_optimization.offload_optimizer", "empty bucket", offload(2), offload(1)),
]  # fmt: skip


def lint(tool, folder, config):
    path = pathlib.Path(folder) / "ds.json"
    path.write_text(json.dumps(config))
    command = [tool, f"--lint-deepspeed={path}", "--mesh=dp=2", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    findings = json.loads(done.stdout)["findings"]
    has_error = any(finding["severity"] == "error" for finding in findings)
    assert done.returncode == (1 if has_error else 0), done
    return findings


def is_found(findings, severity, key, text):
    return any(
        (finding["severity"], finding["key"]) == (severity, key)
        and text in " ".join(finding.values())
        for finding in findings
    )


def main(tool, *flags):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for severity, key, text, bad, good in CASES:
            if "--twins" in flags:
                bad, good = good, bad
            for config, expected in ((bad, True), (good, False)):
                findings = lint(tool, folder, config)
                if is_found(findings, severity, key, text) != expected:
                    wrong += 1
                    word = "missing" if expected else "found"
                    print(f"{word}: {severity} {key} '{text}' in {config}")
    print(f"{len(CASES)} findings, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
