# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The optimizers. They have the arguments of those of torch.optim, and these besides:

max_norm: clips gradients to this norm, as torch.nn.utils.clip_grad_norm_ does. The norm
    is that of the gradients of all ranks. None clips nothing.
loss_scale: "dynamic", the rule of torch.amp.GradScaler, or a number. Losses are scaled by
    `optimizer.scale(loss).backward()`. float16 needs it.
one_backward: there is one backward pass in each step. A second one is an error. Gradients
    in bfloat16 or float16 then stay and travel as they arrive: half the bytes, the same
    bits.
zero: the stage of ZeRO. 0 keeps all state on each rank. 1 divides the state over the
    ranks, 2 divides the summed gradients, too, and 3 the parameters of units, too.
units: of stage 3, the classes of the model's layers, or the layers themselves. Each is a
    unit, whose parameters are gathered for its forward and for its backward pass.
whole_below: of stage 3. Parameters of units that have fewer elements, such as norms and
    biases, stay whole on each rank.
keep_after_forward: of stage 3. True keeps each unit gathered from its forward to its
    backward pass: half the gathers, and a GPU has all parameters at the end of a forward
    pass. "last" keeps the last unit only, which the backward pass uses first.
unit_order: of stage 3. "declared" says that the model uses its units in the order of
    model.modules(), and backward in reverse: a unit out of this order is an error, which
    names the unit that was expected. By default the next unit is guessed.
prefetch_units: of a declared order, how many units are gathered ahead of the one that is
    used. There is memory for one unit more.
gather_dtype: of stage 3. The type in which parameters of units travel, such as
    torch.bfloat16 for half the bytes of float32. The model then reads rounded values. The
    values that the step updates, and that are saved, are not rounded.
reduce: of stage 3. "apply" sums gradients over the ranks once a step, and not in each
    backward pass, as with no_sync of FSDP. Each rank then keeps whole gradients.
accumulate: of stage 1, and of stage 3 with reduce="apply", for parameters in bfloat16 or
    float16. "apart" keeps gradients as they arrive until a second backward pass comes, and
    then gets memory for the sum: 2 bytes for each element in a step of one backward pass,
    and 6 in a step of several. By default both have 4. The bits are the same.
weights: of a model on the meta device, the values of its parameters: a safetensors file,
    an index or a folder of such files, or a function from a name to a tensor. Rank 0 reads
    one parameter at a time, so no rank has the whole model.
device: of such a model, where it goes.
offload: master weights and state are in the memory of the host, which updates them. The
    bits are the same. A GPU then has the parameters and the summed gradients only. At
    stage 3 "parameters" keeps slices of units there, too.
process_group: the ranks that step together; None is torch's default group.
timeout: how many seconds a rank waits for the others.
model: the module of the parameters, where |params| lists them. Then replaced parameters
    are found, as with AdamW(model). Stage 3 needs it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import torch

from zero_opt.errors import ZeroOptError
from zero_opt.torch import _ranks
from zero_opt.torch._description import Recipe
from zero_opt.torch._optimizer import CompiledOptimizer
from zero_opt.torch._parameters import Params
from zero_opt.torch._written import make_recipe

_MOMENTS = {"m": "exp_avg", "v": "exp_avg_sq"}
_MOMENTUM = {"momentum_buffer": "momentum_buffer"}


def _beta(number: int) -> Any:
    return lambda group: group["betas"][number]


def _option(name: str) -> Any:
    return lambda group: group[name]


# In the order in which the compiler's optimizers list them.
_LION = {
    "lr": _option("lr"),
    "wd": _option("weight_decay"),
    "beta1": _beta(0),
    "beta2": _beta(1),
}
_ADAM = _LION | {"eps": _option("eps")}
_SGD = {
    "lr": _option("lr"),
    "momentum": _option("momentum"),
    "wd": _option("weight_decay"),
}


class AdamW(CompiledOptimizer):
    """Adam with decoupled weight decay, as torch.optim.AdamW. With |form| 'torch' each
    rounding is that of torch.optim.AdamW(fused=True) on the CPU."""

    recipe = Recipe("adamw", _ADAM, _MOMENTS, torch.optim.AdamW)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        form: str | None = None,
        **step: Any,
    ) -> None:
        if form not in (None, "torch"):
            raise ZeroOptError(f"form is 'torch' or None, got {form!r}")
        if form:
            self.recipe = dataclasses.replace(self.recipe, name="adamw_torch")
        super().__init__(params, _defaults(lr, weight_decay, betas=betas, eps=eps), **step)


class Adam(CompiledOptimizer):
    """Adam; weight decay is added to the gradient, as in torch.optim.Adam."""

    recipe = Recipe("adam", _ADAM, _MOMENTS, torch.optim.Adam)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **step: Any,
    ) -> None:
        super().__init__(params, _defaults(lr, weight_decay, betas=betas, eps=eps), **step)


class SGD(CompiledOptimizer):
    """SGD with momentum, as torch.optim.SGD without dampening and Nesterov momentum."""

    recipe = Recipe("sgd", _SGD, _MOMENTUM, torch.optim.SGD, switches=("momentum",))

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        **step: Any,
    ) -> None:
        super().__init__(params, _defaults(lr, weight_decay, momentum=momentum), **step)


class Lion(CompiledOptimizer):
    """Lion: the sign of an average of gradients, with decoupled weight decay."""

    recipe = Recipe("lion", _LION, {"m": "exp_avg"}, None)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        **step: Any,
    ) -> None:
        super().__init__(params, _defaults(lr, weight_decay, betas=betas), **step)


class Optimizer(CompiledOptimizer):
    """An optimizer of the user's own, such as examples/adamax.mlir: |ir| is a
    zero.optimizer of the zero dialect, or the name of a file of it. |hyper| has values of
    its hyperparameters, which are options of parameter groups and may change between steps.
    Those that |hyper| leaves out keep the defaults of the IR; |hyper| has lr if the IR
    has."""

    def __init__(
        self,
        params: Params,
        ir: str | os.PathLike[str],
        hyper: Mapping[str, float],
        **step: Any,
    ) -> None:
        ranks = _ranks.find_ranks(step.get("process_group"))
        self.recipe = make_recipe(ir, hyper, ranks)
        super().__init__(params, hyper, **step)


def _defaults(lr: float, weight_decay: float, **others: Any) -> Mapping[str, Any]:
    return {"lr": lr, "weight_decay": weight_decay, **others}
