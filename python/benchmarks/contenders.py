# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ways to train one model on several ranks. Each clips to MAX_NORM, and updates with
AdamW; gradients are means over the ranks and the backward passes of a step.

A contender has `backward(loss, is_last)` and `step()`. It may have `prepare(is_last)`,
which comes before a forward pass, and a count of bytes of its own.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

import zero_opt.torch as zo
from zero_opt._locate import find_runtime

MAX_NORM = 1.0
ROLES = 6  # ZERO_RT_ROLE_COUNT
ADAMW = {"lr": 1e-3, "weight_decay": 0.1}
# DeepSpeed's default is the type of the parameters.
F32_COMMUNICATION = {"communication_data_type": "fp32"}


class Reference:
    """torch alone. On one rank it is what the others are compared with. Parameters in
    bfloat16 have float32 master weights."""

    def __init__(self, model: nn.Module, passes: int) -> None:
        self.model = model
        self.passes = passes
        self.parameters = list(model.parameters())
        self.masters = self.parameters
        if self.parameters[0].dtype != torch.float32:
            self.masters = [p.detach().float() for p in self.parameters]
        self.optimizer = torch.optim.AdamW(self.masters, fused=True, **ADAMW)

    def backward(self, loss: torch.Tensor, is_last: bool) -> None:
        (loss / self.passes).backward()

    def clip(self) -> None:
        nn.utils.clip_grad_norm_(self.masters, MAX_NORM)

    def step(self) -> None:
        if self.masters is not self.parameters:
            for master, parameter in zip(self.masters, self.parameters, strict=True):
                assert parameter.grad is not None
                master.grad = parameter.grad.float()
        self.clip()
        self.optimizer.step()
        if self.masters is not self.parameters:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self.masters)
        for parameter in self.parameters:
            parameter.grad = None


class Ddp(Reference):
    def __init__(self, model: nn.Module, passes: int) -> None:
        super().__init__(model, passes)
        self.model = DistributedDataParallel(model)

    def prepare(self, is_last: bool) -> None:
        self.model.require_backward_grad_sync = is_last  # what no_sync() sets


class Fsdp2(Reference):
    def __init__(self, model: nn.Module, passes: int) -> None:
        policy = MixedPrecisionPolicy()
        if next(model.parameters()).dtype != torch.float32:
            policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
            model.float()
        device = next(model.parameters()).device.type
        mesh = init_device_mesh(device, (torch.distributed.get_world_size(),))
        for block in model.blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        super().__init__(model, passes)

    def prepare(self, is_last: bool) -> None:
        self.model.set_requires_gradient_sync(is_last)


class Counters(ctypes.Structure):
    """The beginning of zero_rt_counters."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("memory", ctypes.c_int64 * (3 * 2 * ROLES)),
        ("calls", ctypes.c_int64 * 5),
        ("bytes_sent", ctypes.c_int64),
        ("others", ctypes.c_int64 * 5),
    ]


class ZeroOpt:
    def __init__(self, model: nn.Module, passes: int, stage: int, **options: Any) -> None:
        self.model = model
        self.passes = passes
        options = {"zero": stage, **ADAMW, **options}
        if stage == 3:
            options["units"] = list(model.blocks)
        self.optimizer = zo.AdamW(model, max_norm=MAX_NORM, **options)

    def backward(self, loss: torch.Tensor, is_last: bool) -> None:
        (loss / self.passes).backward()

    def step(self) -> None:
        self.optimizer.step()

    def count_bytes_sent(self) -> int:
        """What a ring would send: on one machine ranks read the memory of each other."""
        counters = Counters(struct_size=ctypes.sizeof(Counters))
        step = self.optimizer._step
        read = ctypes.CDLL(str(find_runtime())).zero_rt_read_counters
        read.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        if read(step._runtime_handle, ctypes.byref(counters)):
            raise RuntimeError("the counters of the runtime cannot be read")
        return int(counters.bytes_sent)


class DeepSpeed:
    def __init__(self, model: nn.Module, passes: int, stage: int, **more: Any) -> None:
        import deepspeed

        config: dict[str, Any] = {
            "train_micro_batch_size_per_gpu": 1,  # for its log only
            "gradient_accumulation_steps": passes,
            "gradient_clipping": MAX_NORM,
            # Small models have no parameter of the size from which stage 3 shards.
            "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
            "zero_allow_untested_optimizer": True,
            **more,
        }
        if next(model.parameters()).dtype != torch.float32:
            config["bf16"] = {"enabled": True}
        optimizer = torch.optim.AdamW(model.parameters(), fused=True, **ADAMW)
        self.model, *_ = deepspeed.initialize(
            model=model, optimizer=optimizer, config=config
        )

    def backward(self, loss: torch.Tensor, is_last: bool) -> None:
        self.model.backward(loss)
        if not is_last:
            self.model.step()

    def step(self) -> None:
        self.model.step()


CONTENDERS: dict[str, Any] = {
    "zero-opt, stage 1": lambda model, passes: ZeroOpt(model, passes, 1),
    "zero-opt, stage 1, form of torch": lambda model, passes: ZeroOpt(
        model, passes, 1, form="torch"
    ),
    "zero-opt, stage 2": lambda model, passes: ZeroOpt(model, passes, 2),
    "zero-opt, stage 2, offload": lambda model, passes: ZeroOpt(
        model, passes, 2, offload=True
    ),
    "zero-opt, stage 3": lambda model, passes: ZeroOpt(model, passes, 3),
    "DDP, clip, fused AdamW": Ddp,
    "FSDP2, clip, fused AdamW": Fsdp2,
    "DeepSpeed, stage 1": lambda model, passes: DeepSpeed(model, passes, 1),
    "DeepSpeed, stage 1, f32 communication": lambda model, passes: DeepSpeed(
        model, passes, 1, **F32_COMMUNICATION
    ),
    "DeepSpeed, stage 2": lambda model, passes: DeepSpeed(model, passes, 2),
    "DeepSpeed, stage 2, f32 communication": lambda model, passes: DeepSpeed(
        model, passes, 2, **F32_COMMUNICATION
    ),
    "DeepSpeed, stage 3": lambda model, passes: DeepSpeed(model, passes, 3),
}
