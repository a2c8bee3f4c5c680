# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From and to the dicts that torch's optimizers save and load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import torch

from zero_opt.errors import ZeroOptError
from zero_opt.torch import _pieces
from zero_opt.torch._aliases import Placed
from zero_opt.torch._description import UNKNOWN, Recipe
from zero_opt.torch._ranks import Ranks
from zero_opt.torch._state import PARAMETER, State

# These choose an implementation of torch and change no result.
_IGNORED = ("capturable", "differentiable", "foreach", "fused")
Groups: TypeAlias = list[dict[str, Any]]
# The state and the parameter group of a parameter.
Saved: TypeAlias = tuple[dict[str, Any], dict[str, Any]]


def number_parameters(groups: Groups) -> dict[int, int]:
    """By id of the parameter, its number in the parameter groups."""
    parameters = [p for group in groups for p in group["params"]]
    return {id(parameter): number for number, parameter in enumerate(parameters)}


def pack_groups(groups: Groups) -> Groups:
    """The parameter groups with numbers in place of parameters."""
    numbers = number_parameters(groups)
    return [
        group | {"params": [numbers[id(p)] for p in group["params"]]} for group in groups
    ]


def merge(states: list[Any]) -> dict[str, Any]:
    """One state from those of all ranks that saved. What a rank lacks may be whole."""
    first, *others = [_list_saved(state)[0] for state in states]
    merged: dict[Any, dict[str, Any]] = {}
    for key, entry in first.items():
        merged[key] = dict(entry)
        for name, tensor in entry.items():
            if hasattr(tensor, "global_shape"):
                found = [state.get(key, {}).get(name) for state in others]
                parts = [tensor, *(p for p in found if isinstance(p, torch.Tensor))]
                whole = _pieces.find(parts, 0, _pieces.get_elements(tensor))
                merged[key][name] = tensor if whole is None else whole
    return {"state": merged, "param_groups": states[0]["param_groups"]}


def _list_saved(state_dict: Any) -> tuple[Mapping[Any, Any], Groups]:
    try:
        state, groups = state_dict["state"], list(state_dict["param_groups"])
        if isinstance(state, Mapping) and all(
            isinstance(g["params"], list) for g in groups
        ):
            return state, groups
    except (KeyError, TypeError):
        pass
    raise ZeroOptError(
        "the state is no state of an optimizer; load what state_dict() of an optimizer "
        "returned, with 'state' and 'param_groups'"
    )


def match(
    state_dict: Any, groups: Groups, trained: list[Placed], recipe: Recipe
) -> tuple[dict[str, Saved], Groups]:
    """What |state_dict| has for each parameter, by name, and the new parameter groups."""
    state, saved_groups = _list_saved(state_dict)
    sizes = [len(group["params"]) for group in groups]
    saved_sizes = [len(group["params"]) for group in saved_groups]
    if sizes != saved_sizes:
        raise ZeroOptError(
            f"the saved state has parameter groups of {saved_sizes} parameters, and the "
            f"optimizer of {sizes}; create the optimizer with the groups that were saved"
        )
    names = {id(entry.parameter): entry.name for entry in trained}
    found: dict[str, Saved] = {}
    result: Groups = []
    for number, (group, saved) in enumerate(zip(groups, saved_groups, strict=True)):
        for option in recipe.list_unknown():
            if option == "decoupled_weight_decay" and (
                recipe.name == "adamw" or not saved.get("weight_decay")
            ):
                continue
            if option not in group and saved.get(option):
                raise ZeroOptError(
                    f"parameter group {number} of the saved state has '{option}' "
                    f"{saved[option]}, which no step computes; load a state without it"
                )
        _check_names(group, saved)
        kept = {
            name: value
            for name, value in saved.items()
            if name in recipe.hyper or name not in (*_IGNORED, *UNKNOWN)
        }
        result.append(group | kept)
        for key, parameter in zip(saved["params"], group["params"], strict=True):
            if name := names.get(id(parameter)):
                # torch.distributed.checkpoint turns numbers that are keys into strings
                # where it loads objects.
                entry = {**state.get(key, {}), **state.get(str(key), {})}
                found[name] = (entry, result[-1])
    numbers = number_parameters(groups)
    for group, new in zip(groups, result, strict=True):
        new["params"] = [numbers[id(p)] for p in group["params"]]
        new["param_names"] = group["param_names"]
    return found, result


def _check_names(group: dict[str, Any], saved: dict[str, Any]) -> None:
    names = saved.get("param_names")
    # Keys that are names were found by name.
    if names is None or any(isinstance(key, str) for key in saved["params"]):
        return
    for name, saved_name in zip(group["param_names"], names, strict=False):
        if name != saved_name:
            raise ZeroOptError(
                f"the saved state has parameter '{saved_name}' in place of '{name}'; load "
                "the state of the same model, with parameters in the same order"
            )


def count_steps(products: dict[str, float], group: dict[str, Any], recipe: Recipe) -> int:
    """How many steps made these products of betas: the least number, where a product is
    rounded to 0."""
    count = 0
    for name, product in products.items():
        beta = recipe.hyper[name.removesuffix("_t")](group)
        if product == 1:
            continue
        if not 0 < beta < 1:
            count = max(count, 1)
            continue
        count = max(count, round(math.log(max(product, 5e-324)) / math.log(beta)))
    return count


def assemble(pieces: list[Any], trained: Placed) -> torch.Tensor:
    """A whole tensor from the pieces of all ranks."""
    elements = trained.view.numel()
    parts = [_pieces.unprotect(part) for part in pieces]
    whole = _pieces.find(parts, 0, elements) if elements else parts[0]
    assert whole is not None, "the ranks have all elements"
    return whole.reshape(trained.view.shape).clone()


def consolidate_parameter(state: State, entry: Placed, ranks: Ranks) -> torch.Tensor | None:
    """The parameter of a unit on rank 0; None on the others."""
    parts = ranks.gather_to_first(state.read(entry)[PARAMETER])
    return None if parts is None else assemble(parts, entry)


def consolidate(
    state: State, trained: list[Placed], groups: Groups, recipe: Recipe, ranks: Ranks
) -> dict[str, Any]:
    numbers = number_parameters(groups)
    owners = {id(p): group for group in groups for p in group["params"]}
    result: dict[int, dict[str, Any]] = {}
    for entry in trained:
        # One parameter at a time: the pieces of all would not fit.
        parts = ranks.gather_to_first(state.read(entry))
        if parts is None:
            continue
        names = [name for name in recipe.state.values() if name in parts[0]]
        whole = {name: assemble([p[name] for p in parts], entry) for name in names}
        counters = {name: parts[0][name] for name in state.list_counters(entry)}
        if recipe.ir:
            whole |= counters
        elif counters:
            products = {name: value.item() for name, value in counters.items()}
            count = count_steps(products, owners[id(entry.parameter)], recipe)
            whole = {"step": torch.tensor(float(count))} | whole
        result[numbers[id(entry.parameter)]] = whole
    if ranks.rank:
        return {}
    defaults: dict[str, Any] = {}
    if recipe.torch_kind is not None:
        defaults = recipe.torch_kind([torch.zeros(0)]).defaults
    packed = [defaults | group for group in pack_groups(groups)]
    return {"state": result, "param_groups": packed}
