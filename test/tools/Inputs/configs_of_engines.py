# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configurations for scripts that hand numbers to DeepSpeed."""

from config_parts import *

BERT_ADAM = optimizer("Adam", lr=0.001, betas=[0.8, 0.999], eps=1e-8, weight_decay=3e-7)
WARMUP_1000 = scheduler(
    "WarmupLR", warmup_min_lr=0, warmup_max_lr=0.001, warmup_num_steps=1000
)

# The source, the configuration, and the flags that a user adds.
ENGINES = [
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
        "microsoft/DeepSpeedExamples cifar/ds_config.json",
        {"train_batch_size": 4, **QUIET, "gradient_clipping": 1.0, **BERT_ADAM}
        | {"prescale_gradients": False}
        | {"fp16": {"enabled": True, **DYNAMIC, "fp16_master_weights_and_grads": True}}
        | WARMUP_1000
        | zero(2, 5e7, overlap_comm=True, cpu_offload=True, **COPIES),
        ["--set=fp16.fp16_master_weights_and_grads=false"],
    ),
    (
        "microsoft/DeepSpeedExamples QANet-Pytorch/ds_bsz512_1cycle.json",
        {"train_batch_size": 512, "train_micro_batch_size_per_gpu": 32, **BERT_ADAM}
        | scheduler(
            "OneCycle",
            cycle_min_lr=0.004,
            cycle_max_lr=0.015,
            cycle_first_step_size=1000,
            cycle_second_step_size=100,
            cycle_first_stair_count=100,
            cycle_second_stair_count=100,
            decay_step_size=1000,
            decay_lr_rate=0.01,
        ),
        ["--set=scheduler.params.cycle_first_stair_count=0"]
        + ["--set=scheduler.params.cycle_second_stair_count=null"],
    ),
    (
        "EleutherAI/gpt-neox configs/20B.yml",
        {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 32}
        | {"gradient_clipping": 1.0, "steps_per_print": 2}
        | {"fp16": {"enabled": True, "initial_scale_power": 12, **DYNAMIC}}
        | optimizer("Adam", lr=0.97e-4, betas=[0.9, 0.95], eps=1e-8)
        | zero(1, 1260000000, overlap_comm=True, **COPIES),
        [],
    ),
    (
        "EleutherAI/gpt-neox configs/base_deepspeed.json",
        {"train_batch_size": 256, "gradient_accumulation_steps": 1}
        | {"gradient_clipping": 1.0, "fp16": {"enabled": True}}
        | {"tensorboard": {"enabled": True, "job_name": "gptneox"}}
        | optimizer("Adam", lr=0.00015)
        | scheduler(
            "WarmupLR",
            warmup_min_lr=0,
            warmup_max_lr=0.00015,
            warmup_num_steps=5000,
        )
        | zero(2, contiguous_gradients=True, cpu_offload=False),
        [],
    ),
    (
        "zjunlp/KnowLM zero2.json",
        {"gradient_accumulation_steps": 1, "train_micro_batch_size_per_gpu": 3, **QUIET}
        | {"flops_profiler": {"enabled": True, "profile_step": 10, "top_modules": 3}}
        | {"fp16": {"enabled": True, **DYNAMIC, "min_loss_scale": 0.03125}}
        | {"activation_checkpointing": {"cpu_checkpointing": False}}
        | optimizer("AdamW", lr=1e-6, betas=[0.9, 0.95], weight_decay=0.1)
        | zero(
            2,
            5e7,
            cpu_offload=True,
            contiguous_gradients=True,
            overlap_comm=True,
            reduce_scatter=False,
        ),
        [],
    ),
    (
        "decisionintelligence/Aurora deepspeed.json",
        {"train_batch_size": 8192, "train_micro_batch_size_per_gpu": 2048}
        | {"trainer": {"device": "cuda"}}
        | optimizer("AdamW", lr=1e-4, betas=[0.9, 0.95], eps=1e-8, weight_decay=0.1)
        | scheduler("WarmupLR", warmup_min_lr=0, warmup_max_lr=1e-4)
        | zero(2, 2e8, overlap_comm=True, **COPIES),
        [],
    ),
    (
        "CSCfi/pytorch-ddp-examples ds_config.json",
        {"train_batch_size": 400, **QUIET, "gradient_clipping": 1.0, **BERT_ADAM}
        | {"prescale_gradients": False}
        | WARMUP_1000,
        [],
    ),
    (
        "FrankLeeeee/llama-deepspeed-benchmark ds_config.json",
        {"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4}
        | {"gradient_accumulation_steps": 1, "zero_allow_untested_optimizer": True}
        | {"fp16": {"enabled": True, "initial_scale_power": 8, **DYNAMIC}}
        | {"optimizer": {"type": "Adam"}}
        | zero(2, 1e8, overlap_comm=True, **COPIES),
        ["--set=train_batch_size=8"],
    ),
    (
        "dominodatalab/ODSC-West-2022-MPI-DeepSpeed ds_config_zero2.json",
        {"train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 1}
        | {**QUIET, "gradient_clipping": 1.0, "prescale_gradients": False, **BERT_ADAM}
        | {"fp16": {"enabled": True, "initial_scale_power": 15, **DYNAMIC}}
        | WARMUP_1000
        | zero(2, 5e7, overlap_comm=True, **COPIES),
        [],
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
