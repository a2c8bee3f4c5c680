#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports configurations with the shapes of those of public projects, for a small GPT-2.
Each step is proved, runs compiled and interpreted on two ranks with the stage and the
offload of the configuration, and the results are equal.

usage: public_configs.py BIN [--break]

--break runs them at stage 3, which is refused. They are written anew: what counts are the keys that a project has, and their values."""

import json
import pathlib
import subprocess
import sys
import tempfile

MODEL = {
    "model_type": "gpt2",
    "n_embd": 8,
    "n_inner": 12,
    "n_layer": 2,
    "n_positions": 5,
    "vocab_size": 17,
}

BATCH = {
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
}
CLIP = {"gradient_clipping": "auto"}
QUIET = {"steps_per_print": 2000, "wall_clock_breakdown": False}
DYNAMIC = {"loss_scale": 0, "loss_scale_window": 1000, "hysteresis": 2}
DYNAMIC["min_loss_scale"] = 1
AUTO_TYPES = {
    "fp16": {"enabled": "auto", "initial_scale_power": 16, **DYNAMIC},
    "bf16": {"enabled": "auto"},
}
COPIES = {"allgather_partitions": True, "reduce_scatter": True}
COPIES["contiguous_gradients"] = True


def zero(stage, size=None, **more):
    sizes = {"allgather_bucket_size": size, "reduce_bucket_size": size} if size else {}
    return {"zero_optimization": {"stage": stage, **sizes, **more}}


def optimizer(kind, **parameters):
    return {"optimizer": {"type": kind, "params": parameters}}


def scheduler(kind, **parameters):
    return {"scheduler": {"type": kind, "params": parameters}}


AUTO_ADAMW = {name: "auto" for name in ("lr", "betas", "eps", "weight_decay")}
AUTO_WARMUP = {f"warmup_{name}": "auto" for name in ("min_lr", "max_lr", "num_steps")}
SET_BF16 = ["--set=bf16.enabled=true"]
SET_FP16 = ["--set=fp16.enabled=true"]
SET_ADAMW = ["--set=optimizer.type=AdamW", "--set=optimizer.params.lr=1e-3"]
SET_WARMUP = ["--set=scheduler.params.warmup_max_lr=1e-3"]
SET_WARMUP.append("--set=scheduler.params.warmup_num_steps=3")
HOST = {"device": "cpu", "pin_memory": True}

# The source, the configuration, and the flags that a user adds.
PROJECTS = [
    (
        "huggingface/transformers tests/deepspeed/ds_config_zero2.json",
        {**AUTO_TYPES, **BATCH, **CLIP, **QUIET}
        | optimizer("AdamW", **AUTO_ADAMW)
        | scheduler("WarmupLR", **AUTO_WARMUP)
        | zero(2, 2e8, overlap_comm=True, offload_optimizer=HOST, **COPIES),
        SET_BF16 + SET_WARMUP,
    ),
    (
        "huggingface/accelerate examples/deepspeed_config_templates/zero_stage1_config.json",
        {"fp16": {"enabled": True, "initial_scale_power": 16, **DYNAMIC}, **BATCH}
        | {**CLIP, **QUIET, "gradient_accumulation_steps": 1}
        | optimizer(
            "AdamW", lr="auto", weight_decay="auto", torch_adam=True, adam_w_mode=True
        )
        | scheduler("WarmupDecayLR", total_num_steps="auto", **AUTO_WARMUP)
        | zero(1, overlap_comm=True, reduce_bucket_size="auto", **COPIES),
        SET_WARMUP + ["--set=scheduler.params.total_num_steps=9"],
    ),
    (
        "huggingface/accelerate examples/deepspeed_config_templates/zero_stage2_config.json",
        {"fp16": {"enabled": True, "initial_scale_power": 16, **DYNAMIC}, **BATCH}
        | {**CLIP, "gradient_accumulation_steps": 4}
        | optimizer("AdamW", lr="auto", weight_decay="auto", torch_adam=True)
        | scheduler("WarmupDecayLR", total_num_steps="auto", **AUTO_WARMUP)
        | zero(2, overlap_comm=True, reduce_bucket_size="auto", **COPIES),
        SET_WARMUP + ["--set=scheduler.params.total_num_steps=9"],
    ),
    (
        "hiyouga/LLaMA-Factory examples/deepspeed/ds_z0_config.json",
        {**AUTO_TYPES, **BATCH, **CLIP, "zero_allow_untested_optimizer": True}
        | zero(0, 5e8, overlap_comm=False, round_robin_gradients=True, **COPIES)
        | {"comms_config": {"verbose": False}, "monitor_config": {"enabled": True}},
        SET_BF16 + SET_ADAMW,
    ),
    (
        "hiyouga/LLaMA-Factory examples/deepspeed/ds_z2_config.json",
        {**AUTO_TYPES, **BATCH, **CLIP, "zero_allow_untested_optimizer": True}
        | zero(2, 5e8, overlap_comm=False, round_robin_gradients=True, **COPIES)
        | {"comms_config": {"verbose": False}, "monitor_config": {"enabled": True}},
        SET_FP16 + SET_ADAMW,
    ),
    (
        "axolotl-ai-cloud/axolotl deepspeed_configs/zero1.json",
        {**BATCH, "wall_clock_breakdown": False, "bf16": {"enabled": "auto"}}
        | {"fp16": {"enabled": "auto", "auto_cast": False, **DYNAMIC}}
        | optimizer("AdamW", **AUTO_ADAMW)
        | zero(1, overlap_comm=True),
        SET_BF16,
    ),
    (
        "axolotl-ai-cloud/axolotl deepspeed_configs/zero2.json",
        {**BATCH, **CLIP, "wall_clock_breakdown": False, "bf16": {"enabled": "auto"}}
        | {"fp16": {"enabled": "auto", "initial_scale_power": 32, **DYNAMIC}}
        | zero(
            2,
            contiguous_gradients=True,
            overlap_comm=True,
            offload_optimizer={"device": "cpu"},
        ),
        SET_FP16 + SET_ADAMW,
    ),
    (
        "QwenLM/Qwen finetune/ds_config_zero2.json",
        {**AUTO_TYPES, **BATCH, **CLIP, **QUIET, "steps_per_print": 100}
        | optimizer("AdamW", **AUTO_ADAMW)
        | scheduler("WarmupLR", **AUTO_WARMUP)
        | zero(
            2,
            2e8,
            overlap_comm=True,
            offload_optimizer={"device": "none", "pin_memory": True},
            **COPIES,
        ),
        SET_BF16 + SET_WARMUP,
    ),
    (
        "THUDM/ChatGLM-6B ptuning/deepspeed.json",
        {"train_micro_batch_size_per_gpu": "auto", "zero_allow_untested_optimizer": True}
        | {"fp16": {"enabled": "auto", "initial_scale_power": 16, **DYNAMIC}}
        | zero(2, 5e8, overlap_comm=False, **COPIES),
        SET_FP16 + SET_ADAMW + ["--no-decay=1d"],
    ),
    (
        "InternLM/xtuner xtuner/configs/deepspeed/deepspeed_zero2_offload.json",
        {"gradient_accumulation_steps": "auto", "train_micro_batch_size_per_gpu": "auto"}
        | {**CLIP, "zero_allow_untested_optimizer": True}
        | {"zero_force_ds_cpu_optimizer": False}
        | {"fp16": {"enabled": True, "initial_scale_power": 16}}
        | zero(
            2,
            1e8,
            contiguous_gradients=False,
            overlap_comm=True,
            reduce_scatter=True,
            offload_optimizer=HOST,
        ),
        SET_ADAMW,
    ),
    (
        "OpenGVLab/InternVL internvl_chat/zero_stage1_config.json",
        {**BATCH, **CLIP, **QUIET, "wall_clock_breakdown": True}
        | {"fp16": {"enabled": "auto", "auto_cast": True, **DYNAMIC}}
        | {"bf16": {"enabled": "auto"}}
        | optimizer(
            "AdamW", lr="auto", betas=[0.9, 0.999], eps=1e-8, weight_decay="auto"
        )
        | zero(1, 1e9, overlap_comm=True, **COPIES),
        SET_BF16,
    ),
    (
        "IDEA-Research/hana config/deepspeed.py",
        {"zero_allow_untested_optimizer": True, "steps_per_print": 100}
        | {"train_micro_batch_size_per_gpu": 8}
        | {"fp16": {"enabled": True, "initial_scale_power": 16, **DYNAMIC}}
        | {"activation_checkpointing": {"number_checkpoints": False, "profile": False}}
        | scheduler(
            "WarmupLR",
            last_batch_iteration=-1,
            warmup_min_lr=0,
            warmup_max_lr=1e-4,
            warmup_num_steps=10000,
        )
        | zero(
            2, 2e8, contiguous_gradients=True, overlap_comm=True, offload_optimizer=HOST
        ),
        SET_ADAMW,
    ),
    (
        "microsoft/DeepSpeedExamples Megatron-LM/scripts/ds_zero2_config.json",
        {"train_batch_size": 16, "gradient_accumulation_steps": 1, "steps_per_print": 1}
        | {"gradient_clipping": 1.0, "fp16": {"enabled": True, **DYNAMIC}}
        | {"activation_checkpointing": {"partition_activations": True}}
        | optimizer("Adam", lr=0.00015)
        | zero(2),
        [],
    ),
    (
        "microsoft/DeepSpeedExamples QANet-Pytorch/ds_bsz512_warmup.json",
        {"train_batch_size": 32, "steps_per_print": 10}
        | optimizer("Adam", lr=0.001, betas=[0.8, 0.999], eps=1e-8, weight_decay=3e-7)
        | scheduler(
            "WarmupLR", warmup_min_lr=0, warmup_max_lr=0.001, warmup_num_steps=1000
        ),
        [],
    ),
    (
        "CarperAI/trlx ds_config.json",
        {**BATCH, "gradient_clipping": 1.0, "gradient_accumulation_steps": 1}
        | {"fp16": {"enabled": False}, "bf16": {"enabled": False}}
        | zero(
            2,
            offload_param={"device": "cpu"},
            offload_optimizer={"device": "cpu"},
            allgather_partitions=True,
            allgather_bucket_size=5e8,
            contiguous_gradients=True,
        ),
        SET_ADAMW,
    ),
    (
        "lm-sys/FastChat playground/deepspeed_config_s2.json",
        {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}
        | zero(
            2,
            offload_optimizer={"device": "cpu"},
            contiguous_gradients=True,
            overlap_comm=True,
        ),
        SET_ADAMW,
    ),
    (
        "bigscience-workshop/Megatron-DeepSpeed tests/ds_config.json",
        {"train_micro_batch_size_per_gpu": 1, "train_batch_size": 16, **QUIET}
        | {"gradient_clipping": 1.0}
        | {"fp16": {"enabled": True, "initial_scale_power": 12, **DYNAMIC}}
        | zero(1),
        SET_ADAMW + ["--no-decay=1d"],
    ),
]


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(folder, tools, config, flags):
    (folder / "ds.json").write_text(json.dumps(config))
    (folder / "model.json").write_text(json.dumps(MODEL))
    importing = ["--import-deepspeed=ds.json", "--model=model.json", "--mesh=dp=2"]
    text = run(
        folder,
        f"{tools}/zero-translate",
        *importing,
        *flags,
        "--json",
        "-o",
        "step.mlir",
    )
    result = json.loads(text)
    options = result["options"]
    lower = [f"--{name}={options[name]}" for name in options if name != "mesh"]
    run(folder, f"{tools}/zero-prove", "step.mlir", *lower)
    is_one = " one_backward (" in (folder / "step.mlir").read_text()
    if is_one != (result.get("accumulation") == 1):
        raise RuntimeError("one_backward is not what the configuration says")
    passes = min(result.get("accumulation", 2), 4)
    ran = run(
        folder,
        f"{tools}/zero-run",
        "step.mlir",
        *lower,
        "--steps=4",
        f"--accumulation={passes}",
        "--against=typed",
        "--json",
    )
    if not json.loads(ran)["equal"]:
        raise RuntimeError("the results differ from the interpreter's")
    return f"{' '.join(lower)}, {passes} backward passes"


def main(tools, *more):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for source, config, flags in PROJECTS:
            if "--break" in more:
                config = config | zero(3)
            try:
                done = check(pathlib.Path(folder), tools, config, flags)
                print(f"{source}: {done}")
            except RuntimeError as error:
                wrong += 1
                print(f"{source}: {error}")
    print(f"{len(PROJECTS)} configurations, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
