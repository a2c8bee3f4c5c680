# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameter groups keep the parameters that the step was compiled for.

The step reads hyperparameters of group 0 for the parameters that group 0 had. torch would
train what the lists in `param_groups` say at each step.
"""

from __future__ import annotations

import operator
from itertools import zip_longest
from typing import Any

import torch

from zero_opt.errors import ZeroOptError
from zero_opt.torch._parameters import ListedGroup, Named


def check_listed_once(groups: list[ListedGroup]) -> None:
    """torch would update a parameter of two places twice."""
    names: dict[int, str] = {}
    for group in groups:
        for name, parameter in group.params:
            if id(parameter) in names:
                raise ZeroOptError(
                    f"the optimizer got one parameter twice, as '{names[id(parameter)]}' "
                    f"and as '{name}'; list it once"
                )
            names[id(parameter)] = name


def check_frozen(frozen: list[Named]) -> None:
    """Refuses parameters that no step updates, and that require a gradient now."""
    for name, parameter in frozen:
        if parameter.requires_grad:
            raise ZeroOptError(
                f"parameter '{name}' required no gradient when the optimizer was "
                "created, and does now; create a new optimizer"
            )


def _is_same(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


class Groups:
    """The parameters of all groups, frozen ones, too, as they have to stay."""

    def __init__(self, param_groups: list[dict[str, Any]]) -> None:
        self._params = [[*group["params"]] for group in param_groups]
        self._names = {
            id(parameter): name
            for group in param_groups
            for parameter, name in zip(group["params"], group["param_names"], strict=True)
        }

    def replace(
        self, param_groups: list[dict[str, Any]], old: torch.Tensor, new: torch.Tensor
    ) -> None:
        """The model has |new| in the place of |old|."""

        def swap(params: list[torch.Tensor]) -> list[torch.Tensor]:
            return [new if p is old else p for p in params]

        for group in param_groups:
            group["params"] = swap(group["params"])
        self._params = [swap(params) for params in self._params]
        self._names[id(new)] = self._names.pop(id(old))

    def check(self, param_groups: list[dict[str, Any]]) -> None:
        """Refuses groups and parameters that are others now, or in another order."""
        if len(param_groups) != len(self._params):
            raise ZeroOptError(
                f"the optimizer has {len(param_groups)} parameter groups, and had "
                f"{len(self._params)} when it was created; create a new optimizer"
            )
        for number, (group, params) in enumerate(
            zip(param_groups, self._params, strict=True)
        ):
            if not _is_same(group["params"], params):
                self._refuse(number, group["params"], params)

    def _refuse(
        self, number: int, found: list[torch.Tensor], expected: list[torch.Tensor]
    ) -> None:
        for place, (has, had) in enumerate(zip_longest(found, expected)):
            if has is not had:
                raise ZeroOptError(
                    f"parameter group {number} has {self._name(has)} in place {place}, and "
                    f"had {self._name(had)} when the optimizer was created; put "
                    "param_groups back and freeze parameters with requires_grad_(False), "
                    "or create a new optimizer"
                )

    def _name(self, parameter: torch.Tensor | None) -> str:
        if parameter is None:
            return "no parameter"
        name = self._names.get(id(parameter))
        return f"parameter '{name}'" if name else "a parameter that is not of the optimizer"
