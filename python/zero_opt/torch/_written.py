# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers that their users have written as IR."""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
import os
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch

from zero_opt._step import Step
from zero_opt.errors import ZeroOptError
from zero_opt.torch._description import UNKNOWN, Recipe
from zero_opt.torch._ranks import Ranks
from zero_opt.torch._state import MASTER, PARAMETER

# torch's own entries of a parameter group.
_TAKEN = ("params", "param_names")


def _read_text(ir: str | os.PathLike[str]) -> str:
    """|ir|, or what the file of that name has."""
    if not isinstance(ir, str | os.PathLike):
        raise ZeroOptError(
            f"the optimizer is IR, or a file of it, got {type(ir).__name__}; pass a text "
            "with zero.optimizer, or a path"
        )
    if isinstance(ir, str) and "zero.optimizer" in ir and "{" in ir:
        return ir
    try:
        return pathlib.Path(ir).read_text()
    except (OSError, ValueError) as error:  # no file, no text, or no path
        raise ZeroOptError(
            f"the optimizer is IR, or a file of it, and {str(ir)[:80]!r} cannot be read: "
            f"{getattr(error, 'strerror', None) or error}"
        ) from error


@functools.cache
def _list_names(ir: str, kind: str) -> set[str]:
    """The hyperparameters or the counters of |ir|, to look for those that would do harm:
    the compiler knows what |ir| says."""
    code = re.sub(r"//[^\n]*", "", ir)
    header = re.search(rf"\b{kind}\s*\[(.*?)\]", code, re.DOTALL)
    names = header.group(1).split(",") if header else []
    return {name.partition("=")[0].strip().strip('"') for name in names}


def _is_finite(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() == 1 and bool(value.isfinite())
    try:
        return (
            isinstance(value, numbers.Real)
            and not isinstance(value, bool)
            and math.isfinite(value)
        )
    except OverflowError:  # a whole number that is no float
        return False


def _read_option(name: str) -> Callable[[dict[str, Any]], float]:
    return lambda group: group[name]


class WrittenRecipe(Recipe):
    """Of an optimizer that is IR."""

    def get_beta(self, counter: str) -> None:
        return None

    def list_unknown(self) -> list[str]:
        return [name for name in UNKNOWN if name not in self.hyper]

    def check_values(self, where: str, options: Mapping[str, Any]) -> None:
        for name in self.hyper.keys() & options.keys():
            value = options[name]
            if not _is_finite(value):
                raise ZeroOptError(f"{where}{name} must be a finite number, got {value!r}")

    def check_unread(self, where: str, options: Mapping[str, Any]) -> None:
        for name in sorted(_list_names(self.ir or "", "hyper") - self.hyper.keys()):
            if name in options:
                raise ZeroOptError(
                    f"{where}'{name}' is a hyperparameter that the step has as a constant; "
                    "add it to hyper"
                )


def _read_on_all(ir: str | os.PathLike[str], ranks: Ranks) -> str:
    """A file may be on some ranks only, and the others would wait for these."""
    text, message = "", None
    try:
        text = _read_text(ir)
    except ZeroOptError as error:
        message = str(error)
    for rank, found in enumerate(ranks.gather(message)):
        if found:
            raise ZeroOptError(f"rank {rank}: {found}" if ranks.size > 1 else found)
    return text


def make_recipe(
    ir: str | os.PathLike[str], hyper: Mapping[str, Any], ranks: Ranks
) -> Recipe:
    """What is known of the optimizer before it is compiled. All ranks make this call."""
    if not isinstance(hyper, Mapping):
        raise ZeroOptError(
            f"hyper has values of hyperparameters by name, got {type(hyper).__name__}; "
            "pass a dict, such as {'lr': 1e-3}"
        )
    for name in _TAKEN:
        if name in hyper:
            raise ZeroOptError(
                f"hyperparameter '{name}' has the name of an entry of torch's parameter "
                "groups; give it another name in the IR"
            )
    text = _read_on_all(ir, ranks)
    for name in sorted(_list_names(text, "counters")):
        if "." in name:
            raise ZeroOptError(
                f"counter '{name}' of the optimizer has a dot in its name; give it another "
                "one in the IR"
            )
    readers = {name: _read_option(name) for name in hyper}
    return WrittenRecipe("optimizer", readers, {}, None, text)


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
    order = [name.partition(".")[2] for name in step.inputs[: len(recipe.hyper)]]
    return dataclasses.replace(
        recipe,
        hyper={name: recipe.hyper[name] for name in order},
        state={name: name for name in sorted(names - {MASTER, PARAMETER})},
    )
