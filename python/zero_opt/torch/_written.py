# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers that their users have written as IR."""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from zero_opt._step import Step
from zero_opt.errors import ZeroOptError
from zero_opt.torch._description import Recipe
from zero_opt.torch._ranks import Ranks
from zero_opt.torch._state import MASTER, PARAMETER

# torch's own entries of a parameter group.
_TAKEN = ("params", "param_names")


def _read_text(ir: str | os.PathLike[str]) -> str:
    """|ir|, or what the file of that name has."""
    if isinstance(ir, str) and "zero.optimizer" in ir:
        return ir
    try:
        return pathlib.Path(ir).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ZeroOptError(
            f"the optimizer is IR, or a file of it, and {str(ir)[:80]!r} cannot be read: "
            f"{getattr(error, 'strerror', None) or error}"
        ) from error


def _read_option(name: str) -> Callable[[dict[str, Any]], float]:
    return lambda group: group[name]


def _check(hyper: Mapping[str, Any]) -> None:
    for name, value in hyper.items():
        if name in _TAKEN:
            raise ZeroOptError(
                f"hyperparameter '{name}' has the name of an entry of torch's parameter "
                "groups; give it another name in the IR"
            )
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value):
            raise ZeroOptError(f"{name} must be a finite number, got {value!r}")


def make_recipe(ir: str | os.PathLike[str], hyper: Mapping[str, Any]) -> Recipe:
    """What is known of the optimizer before it is compiled."""
    _check(hyper)
    text = _read_text(ir)
    return Recipe("optimizer", {name: _read_option(name) for name in hyper}, {}, None, text)


def complete(recipe: Recipe, step: Step, ranks: Ranks) -> Recipe:
    """|recipe| with what the compiled |step| says of an optimizer that is IR: the order of
    its hyperparameters, and the names of its state. All ranks make this call."""
    if recipe.ir is None:
        return recipe
    # A rank without a piece of any parameter has no state.
    roles = [entry.role for entry in step.list_state() if entry.parameter is not None]
    names = {role for found in ranks.gather(roles) for role in found}
    # A hyperparameter without a value is an input, too, if it is called lr.
    if "lr" in step.inputs and "lr" not in recipe.hyper:
        raise ZeroOptError("the optimizer needs a value of 'lr'; add it to hyper")
    order = step.inputs[: len(recipe.hyper)]
    return dataclasses.replace(
        recipe,
        hyper={name: recipe.hyper[name] for name in order},
        state={name: name for name in sorted(names - {MASTER, PARAMETER})},
    )
