# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of an optimizer: their names, parameter groups and modules."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import torch
from torch import nn

from zero_opt.errors import ZeroOptError

Named: TypeAlias = "tuple[str, torch.Tensor]"
Params: TypeAlias = (
    "nn.Module | Iterable[torch.Tensor] | Iterable[Named] | Iterable[dict[str, Any]]"
)
DTYPES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}


@dataclasses.dataclass
class Slot:
    """A place in a module that has a parameter, and may get another one later."""

    name: str
    module: weakref.ref[nn.Module]
    key: str

    def get(self) -> nn.Parameter | None:
        module = self.module()
        return None if module is None else module._parameters.get(self.key)


@dataclasses.dataclass
class ListedGroup:
    """A parameter group: named parameters, and what the caller says besides."""

    params: list[Named]
    options: dict[str, Any]


def refuse_wrapped(model: nn.Module) -> None:
    wrappers: list[tuple[type, str]] = [
        (nn.parallel.DistributedDataParallel, "DistributedDataParallel"),
        (nn.DataParallel, "DataParallel"),
    ]
    if torch.distributed.is_available():
        from torch.distributed import fsdp

        for name in ("FullyShardedDataParallel", "FSDPModule"):
            if wrapper := getattr(fsdp, name, None):
                wrappers.append((wrapper, name))
    for name, module in model.named_modules():
        for wrapper, wrapper_name in wrappers:
            if isinstance(module, wrapper):
                raise ZeroOptError(
                    f"{f'module {name!r}' if name else 'the model'} is wrapped in "
                    f"{wrapper_name}, and this optimizer already reduces gradients over "
                    "the ranks; pass the model without the wrapper"
                )


def list_slots(model: nn.Module) -> list[Slot]:
    """All places of parameters; a tied parameter has several."""
    slots = []
    for prefix, module in model.named_modules():
        for key in module._parameters:
            name = f"{prefix}.{key}" if prefix else key
            slots.append(Slot(name, weakref.ref(module), key))
    return slots


def _name_all(params: Any, prefix: str) -> list[Named]:
    """|params| with names: those of the caller, else numbers."""
    if isinstance(params, torch.Tensor):
        params = [params]
    named = []
    for number, entry in enumerate(params):
        if isinstance(entry, torch.Tensor):
            named.append((f"{prefix}.{number}", entry))
        elif (
            isinstance(entry, tuple)
            and len(entry) == 2
            and isinstance(entry[0], str)
            and isinstance(entry[1], torch.Tensor)
        ):
            named.append(entry)
        else:
            raise ZeroOptError(
                f"parameter {number} is a {type(entry).__name__}, expected a tensor or "
                "a name and a tensor"
            )
    return named


def list_groups(params: Params) -> list[ListedGroup]:
    if isinstance(params, nn.Module):
        refuse_wrapped(params)
        return [ListedGroup(list(params.named_parameters()), {})]
    entries = list(params)
    if not entries:
        raise ZeroOptError("the optimizer got an empty list of parameters")
    if not isinstance(entries[0], Mapping):
        return [ListedGroup(_name_all(entries, "param"), {})]
    groups = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise ZeroOptError(
                f"parameter group {number} is a {type(entry).__name__}, expected a dict"
            )
        options = {key: value for key, value in entry.items() if key != "params"}
        given = entry["params"]
        if isinstance(given, nn.Module):
            refuse_wrapped(given)
            given = given.named_parameters()
        named = _name_all(given, f"group{number}")
        groups.append(ListedGroup(named, options))
    return groups


def check_parameter(name: str, parameter: torch.Tensor, has_loss_scale: bool) -> None:
    """Refuses what no step can train."""
    remedy = ""
    if not parameter.is_leaf:
        remedy = "is no leaf of the graph; pass the parameter that it was computed from"
    elif hasattr(parameter, "placements"):
        remedy = "is a DTensor, such as FSDP2 makes; pass the model before it is sharded"
    elif parameter.layout != torch.strided:
        remedy = f"has layout {parameter.layout}, expected a dense tensor"
    elif not (
        parameter.is_cpu or parameter.is_meta or (parameter.is_cuda and torch.version.cuda)
    ):
        remedy = f"is on {parameter.device}; move it to the CPU or to a GPU of CUDA"
    elif parameter.dtype not in DTYPES:
        remedy = f"has dtype {parameter.dtype}; convert it to bfloat16 or float32"
    elif parameter.dtype is torch.float16 and not has_loss_scale:
        remedy = (
            "has dtype torch.float16, in which small gradients vanish; give the optimizer "
            "loss_scale='dynamic', or convert the parameter to bfloat16"
        )
    if remedy:
        raise ZeroOptError(f"parameter '{name}' {remedy}")
