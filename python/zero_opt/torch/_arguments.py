# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of a module with other tensors in them, and the tensors that it returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree


class Arguments:
    """|given| with other tensors for those that need a gradient. A module may write to the
    lists and dicts that it gets; `write_back` does it to those of the caller."""

    def __init__(
        self,
        given: Any,
        replace: Callable[..., tuple[torch.Tensor, ...]],
    ) -> None:
        leaves, tree = _pytree.tree_flatten(given)
        places = [
            i
            for i, leaf in enumerate(leaves)
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad
        ]
        self._containers: list[tuple[Any, Any]] = []
        self._originals: dict[int, tuple[Any, Any]] = {}  # by id of what replaces it
        self.values: Any = None  # nothing is replaced
        if not places:
            return
        for i, tensor in zip(places, replace(*(leaves[i] for i in places)), strict=True):
            self._originals[id(tensor)] = tensor, leaves[i]
            leaves[i] = tensor
        self.values = _pytree.tree_unflatten(leaves, tree)
        self._pair(given, self.values)

    def _pair(self, given: Any, made: Any) -> None:
        if isinstance(given, list | dict):
            self._containers.append((given, made))
        if isinstance(given, list | tuple):
            for one, other in zip(given, made, strict=True):
                self._pair(one, other)
        elif isinstance(given, dict):
            for key, one in given.items():
                self._pair(one, made[key])

    def write_back(self) -> None:
        originals = self._originals | {
            id(made): (made, own) for own, made in self._containers
        }

        def find(value: Any) -> Any:
            return originals.get(id(value), (value, value))[1]

        for own, made in self._containers:
            if isinstance(own, list):
                own[:] = [find(value) for value in made]
            else:
                items = {key: find(value) for key, value in made.items()}
                own.clear()
                own.update(items)


def list_tensors(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in what a module returns."""
    for leaf in _pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            yield leaf
        elif dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            for field in dataclasses.fields(leaf):
                yield from list_tensors(getattr(leaf, field.name, None))
