# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configurations of ZeRO stage 3. The model of the test is small, and so a threshold that
is a number must be."""

from config_parts import *

AUTO_SIZES = {
    name: "auto"
    for name in (
        "reduce_bucket_size",
        "stage3_prefetch_bucket_size",
        "stage3_param_persistence_threshold",
    )
}
LIVE = {"stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9}
SAVE = {"stage3_gather_16bit_weights_on_model_save": True}
SET_SMALL = ["--set=zero_optimization.stage3_param_persistence_threshold=90"]

# The source, the configuration, and the flags that a user adds.
STAGE3 = [
    (
        "hiyouga/LLaMA-Factory examples/deepspeed/ds_z3_config.json",
        {**AUTO_TYPES, **BATCH, **CLIP, "zero_allow_untested_optimizer": True}
        | zero(
            3,
            overlap_comm=False,
            contiguous_gradients=True,
            sub_group_size=1e9,
            **AUTO_SIZES,
            **LIVE,
            **SAVE,
        ),
        SET_BF16 + SET_ADAMW,
    ),
    (
        "huggingface/transformers tests/deepspeed/ds_config_zero3.json",
        {**AUTO_TYPES, **BATCH, **CLIP, **QUIET}
        | optimizer("AdamW", **AUTO_ADAMW)
        | scheduler("WarmupLR", **AUTO_WARMUP)
        | zero(
            3,
            offload_optimizer=HOST,
            offload_param=HOST,
            overlap_comm=True,
            contiguous_gradients=True,
            sub_group_size=1e9,
            **AUTO_SIZES,
            **LIVE,
            **SAVE,
        ),
        SET_BF16 + SET_WARMUP,
    ),
    (
        "huggingface/accelerate examples/deepspeed_config_templates/zero_stage3_config.json",
        {"fp16": {"enabled": True, "initial_scale_power": 16, **DYNAMIC}, **BATCH}
        | {**CLIP, **QUIET, "gradient_accumulation_steps": 1}
        | optimizer("AdamW", lr="auto", weight_decay="auto")
        | scheduler("WarmupDecayLR", total_num_steps="auto", **AUTO_WARMUP)
        | zero(
            3,
            overlap_comm=True,
            contiguous_gradients=True,
            sub_group_size=1e9,
            stage3_gather_16bit_weights_on_model_save="auto",
            **AUTO_SIZES,
            **LIVE,
        ),
        SET_WARMUP + ["--set=scheduler.params.total_num_steps=9"],
    ),
    (
        "microsoft/DeepSpeedExamples DeepSpeed-Chat/training/utils/ds_utils.py",
        {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}
        | {"fp16": {"enabled": True, "loss_scale_window": 100}, "gradient_clipping": 1.0}
        | {"prescale_gradients": False, "wall_clock_breakdown": False}
        | zero(
            3,
            overlap_comm=True,
            offload_param={"device": "none"},
            offload_optimizer={"device": "cpu"},
            stage3_param_persistence_threshold=1e4,
            stage3_max_live_parameters=3e7,
            stage3_prefetch_bucket_size=3e7,
            memory_efficient_linear=False,
        ),
        SET_ADAMW + SET_SMALL,
    ),
    (
        "axolotl-ai-cloud/axolotl deepspeed_configs/zero3_bf16.json",
        {**BATCH, "wall_clock_breakdown": False, "bf16": {"enabled": True}}
        | {"data_types": {"grad_accum_dtype": "fp32"}}
        | zero(
            3,
            overlap_comm=True,
            contiguous_gradients=True,
            sub_group_size=0,
            stage3_max_live_parameters=0,
            stage3_max_reuse_distance=0,
            **AUTO_SIZES,
            **SAVE,
        ),
        SET_ADAMW + ["--no-decay=1d"],
    ),
]
