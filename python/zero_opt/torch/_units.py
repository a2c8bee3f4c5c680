# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Units of ZeRO stage 3: which module is one, and which parameters it has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn

from zero_opt.errors import ZeroOptError
from zero_opt.torch._parameters import DTYPES, Named

Units: TypeAlias = "Iterable[type[nn.Module] | nn.Module] | None"

KeepAfterForward: TypeAlias = bool | str

_EXAMPLE = "such as zo.AdamW(model, zero=3, units=[TransformerBlock])"


@dataclasses.dataclass
class Unit:
    """A module whose parameters are gathered and released together."""

    name: str
    module: nn.Module
    parameters: dict[int, torch.Tensor] = dataclasses.field(default_factory=dict)  # by id
    inner: list[Unit] = dataclasses.field(default_factory=list)

    def has_inner(self) -> bool:
        return any(unit.parameters or unit.has_inner() for unit in self.inner)


def check_units(units: Any, zero: int, model: nn.Module | None, whole_below: int) -> None:
    if isinstance(whole_below, bool) or not isinstance(whole_below, int) or whole_below < 0:
        raise ZeroOptError(
            f"whole_below is a number of elements, got {whole_below!r}; parameters that "
            "have fewer stay whole on each rank"
        )
    if whole_below and zero != 3:
        raise ZeroOptError(
            f"whole_below is an argument of ZeRO stage 3, and zero is {zero}; leave it "
            "out, or give zero=3"
        )
    if zero != 3:
        if units is not None:
            raise ZeroOptError(
                f"units is an argument of ZeRO stage 3, and zero is {zero}; leave it out, "
                "or give zero=3"
            )
        return
    if units is None or (isinstance(units, Sequence) and not units):
        raise ZeroOptError(
            f"stage 3 shards the parameters of units, and there is none; list the classes "
            f"of the model's layers, {_EXAMPLE}"
        )
    if model is None:
        raise ZeroOptError(
            "units are modules of the model, and the optimizer got parameters; give the "
            "optimizer the model, too: zo.AdamW(params, model=model, zero=3, units=[...])"
        )


def _match(units: Any, model: nn.Module) -> set[int]:
    """The ids of the modules that |units| lists."""
    modules = list(model.modules())
    found: set[int] = set()
    for entry in units if isinstance(units, Iterable) else [units]:
        if isinstance(entry, nn.Module):
            ids = {id(module) for module in modules if module is entry}
            what = f"a module of class {type(entry).__name__}"
        elif isinstance(entry, type) and issubclass(entry, nn.Module):
            ids = {id(module) for module in modules if isinstance(module, entry)}
            what = f"the class {entry.__name__}"
        else:
            raise ZeroOptError(
                f"units lists classes of modules, or modules, got {entry!r}; {_EXAMPLE}"
            )
        if not ids:
            raise ZeroOptError(
                f"units has {what}, and the model has no such module; list the classes of "
                "the model's layers"
            )
        found |= ids
    return found


def _list_frozen(
    model: nn.Module, is_here: Callable[[torch.Tensor], bool]
) -> dict[int, Named]:
    """By id: the frozen parameters of |model| that units can have, which are dense tensors
    of torch's own."""
    return {
        id(parameter): (name, parameter)
        for name, parameter in model.named_parameters()
        if not parameter.requires_grad
        and type(parameter) is nn.Parameter
        and type(parameter.data) is torch.Tensor
        and parameter.layout == torch.strided
        and parameter.dtype in DTYPES
        and is_here(parameter)
    }


def find_units(
    units: Any,
    model: nn.Module,
    trained: Iterable[torch.Tensor],
    is_here: Callable[[torch.Tensor], bool],
    whole_below: int,
) -> tuple[list[Unit], list[Named]]:
    """The units of |model|, in its order, and the frozen parameters that they have besides
    those of |trained|: only parameters of which |is_here| is true. A parameter belongs to
    the innermost unit around it. These are of no unit: a parameter of fewer than
    |whole_below| elements; one that is tied, so that two units have it or one and the rest;
    and one of a unit that has other units in it, since there is memory for two units
    only."""
    matched = _match(units, model)
    frozen = _list_frozen(model, is_here)
    wanted = {id(parameter): parameter for parameter in trained}
    wanted |= {key: parameter for key, (_, parameter) in frozen.items()}
    found: dict[int, Unit] = {}
    owners: dict[int, set[int | None]] = {}

    def visit(module: nn.Module, name: str, unit: Unit | None) -> None:
        if id(module) in matched:
            outer = unit
            unit = found.setdefault(id(module), Unit(name or "model", module))
            if outer is not None:
                outer.inner.append(unit)
        for parameter in module._parameters.values():
            owner = None if unit is None else id(unit.module)
            owners.setdefault(id(parameter), set()).add(owner)
        for key, child in module._modules.items():
            if child is not None:
                visit(child, f"{name}.{key}" if name else key, unit)

    visit(model, "", None)
    for key, parameter in wanted.items():
        (owner, *others) = owners.get(key, {None})
        if owner is not None and not others and parameter.numel() >= whole_below:
            found[owner].parameters[key] = parameter
    result = [u for u in found.values() if u.parameters and not u.has_inner()]
    if not result:
        raise ZeroOptError(
            "no unit has a parameter of its own"
            + (f" of {whole_below} elements and more" if whole_below else "")
            + ", so stage 3 has nothing to shard; list the classes of layers that have "
            "some, or give zero=2"
        )
    members = {key for unit in result for key in unit.parameters}
    return result, [named for key, named in frozen.items() if key in members]
