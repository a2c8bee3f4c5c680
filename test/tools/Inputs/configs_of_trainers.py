# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configurations for Hugging Face's Trainer and the like, which replaces "auto"."""

from config_parts import *

# The source, the configuration, and the flags that a user adds.
TRAINERS = [
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
        "LLaVA-VL/LLaVA-NeXT scripts/zero2_offload.json",
        {**AUTO_TYPES, **BATCH}
        | zero(
            2,
            offload_optimizer=HOST,
            offload_param=HOST,
            overlap_comm=True,
            contiguous_gradients=True,
            sub_group_size=1e9,
            reduce_bucket_size="auto",
        ),
        SET_BF16 + SET_ADAMW,
    ),
    (
        "PKU-YuanGroup/MoE-LLaVA scripts/zero2_offload.json",
        {**BATCH, "bf16": {"enabled": "auto"}}
        | {"fp16": {"enabled": "auto", **DYNAMIC, "loss_scale_window": 100}}
        | zero(
            2,
            offload_optimizer={"device": "cpu"},
            overlap_comm=True,
            contiguous_gradients=True,
            sub_group_size=1e9,
            reduce_bucket_size="auto",
        ),
        SET_FP16 + SET_ADAMW,
    ),
    (
        "OpenBMB/MiniCPM-V finetune/ds_config_zero2.json",
        {**AUTO_TYPES, **BATCH, **CLIP, **QUIET, "steps_per_print": 100}
        | optimizer("AdamW", **AUTO_ADAMW)
        | zero(
            2,
            2e8,
            offload_optimizer={"device": "none", "pin_memory": True},
            overlap_comm=True,
            **COPIES,
        ),
        SET_BF16,
    ),
    (
        "OptimalScale/LMFlow configs/ds_config_zero2.json",
        {**AUTO_TYPES, **BATCH, **CLIP, **QUIET}
        | optimizer("AdamW", **AUTO_ADAMW)
        | zero(2, 2e8, offload_optimizer=HOST, overlap_comm=True, **COPIES),
        SET_FP16,
    ),
    (
        "nlpai-lab/KULLM scripts/training/ds_zero2_no_offload.json",
        {**BATCH, **CLIP, **QUIET}
        | {"fp16": {"enabled": "auto", **DYNAMIC, "min_loss_scale": 1e-10}}
        | zero(2, 1e8, overlap_comm=True, **COPIES),
        SET_FP16 + SET_ADAMW,
    ),
    (
        "shibing624/MedicalGPT scripts/zero1.json",
        {**BATCH, **CLIP, **QUIET, "steps_per_print": 1000}
        | {"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}
        | optimizer(
            "AdamW", lr="auto", weight_decay="auto", torch_adam=True, adam_w_mode=True
        )
        | scheduler("WarmupDecayLR", total_num_steps="auto", **AUTO_WARMUP)
        | zero(1),
        SET_BF16 + SET_WARMUP + ["--set=scheduler.params.total_num_steps=9"],
    ),
    (
        "jquesnelle/yarn deepspeed/zero2.json",
        {**AUTO_TYPES, **BATCH, **CLIP, **QUIET}
        | optimizer(
            "AdamW", lr="auto", betas=[0.9, 0.95], eps=1e-8, weight_decay="auto"
        )
        | scheduler(
            "WarmupDecayLR", warmup_type="linear", total_num_steps="auto", **AUTO_WARMUP
        )
        | zero(2, 1e9, overlap_comm=False, **COPIES),
        SET_BF16 + SET_WARMUP + ["--set=scheduler.params.total_num_steps=3"],
    ),
    (
        "NousResearch/StripedHyenaTrainer deepspeed/zero2.json",
        {**BATCH, "wall_clock_breakdown": False, "bf16": {"enabled": "auto"}}
        | {"fp16": {"enabled": "auto", "auto_cast": False, **DYNAMIC}}
        | zero(2, contiguous_gradients=True, overlap_comm=True),
        SET_BF16 + SET_ADAMW,
    ),
    (
        "tencent-ailab/Penguin-VL scripts/zero1.json",
        {**AUTO_TYPES, **BATCH}
        | zero(1, 5e8, overlap_comm=True, contiguous_gradients=True),
        SET_BF16 + SET_ADAMW + ["--no-decay=1d"],
    ),
    (
        "mbzuai-oryx/PALO scripts/zero1.json",
        {**AUTO_TYPES, **BATCH} | zero(1),
        SET_FP16 + SET_ADAMW,
    ),
    (
        "microsoft/Obliviate-Unmemorization deepspeed.json",
        {**BATCH, **CLIP, **QUIET, "bf16": {"enabled": True}}
        | zero(
            2,
            overlap_comm=True,
            contiguous_gradients=False,
            sub_group_size=1e8,
            reduce_bucket_size=1e8,
            stage3_prefetch_bucket_size=5e8,
            stage3_max_live_parameters=1e9,
            round_robin_gradients=True,
        ),
        SET_ADAMW,
    ),
    (
        "thu-ml/RDT2 scripts/zero1.json",
        {**BATCH, **CLIP, "bf16": {"enabled": "auto"}}
        | zero(
            1,
            allgather_partitions=True,
            allgather_bucket_size=5e8,
            overlap_comm=True,
            contiguous_gradients=True,
            sub_group_size=1e9,
            reduce_bucket_size=8e8,
        ),
        SET_BF16 + SET_ADAMW,
    ),
    (
        "Qihoo360/360zhinao finetune/ds_config_zero2.json",
        {**AUTO_TYPES, **BATCH, **CLIP, **QUIET, "steps_per_print": 100}
        | optimizer("AdamW", **AUTO_ADAMW)
        | scheduler("WarmupLR", **AUTO_WARMUP)
        | zero(
            2,
            2e8,
            offload_optimizer={"device": "none", "pin_memory": True},
            overlap_comm=True,
            **COPIES,
        ),
        SET_FP16 + SET_WARMUP + ["--set=gradient_accumulation_steps=1"],
    ),
    (
        "TinyLLaVA/TinyLLaVA_Factory scripts/zero2.json",
        {**AUTO_TYPES, **BATCH}
        | zero(
            2,
            overlap_comm=True,
            contiguous_gradients=True,
            ignore_unused_parameters=True,
            sub_group_size=1e9,
            reduce_bucket_size="auto",
        ),
        SET_BF16 + SET_ADAMW,
    ),
    (
        "microsoft/DeepSpeedExamples autotuning/hf/dsconfigs/ds_config_fp16_z1.json",
        {"train_micro_batch_size_per_gpu": "auto", "fp16": {"enabled": True}} | zero(1),
        SET_ADAMW,
    ),
]
