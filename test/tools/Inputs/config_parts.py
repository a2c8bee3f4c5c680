# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts that many configurations of DeepSpeed have."""

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
