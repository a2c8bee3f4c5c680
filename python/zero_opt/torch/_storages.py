# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that share memory with a parameter.

The optimizer gives each parameter other memory. What shared the old memory would keep old
values with no word: a parameter that was tied with `.data =`, a buffer that is a view.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator

import torch
from torch import nn

from zero_opt.errors import ZeroOptError
from zero_opt.torch._parameters import Named


@dataclasses.dataclass
class _Place:
    """A tensor in the bytes from |begin| to |end|."""

    name: str
    tensor: torch.Tensor
    kind: str
    is_trained: bool
    begin: int
    end: int


def _find_places(
    named: Iterable[Named], kind: str, trained: set[int], seen: set[int]
) -> Iterator[_Place]:
    for name, tensor in named:
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        try:
            begin = tensor.data_ptr() if tensor.layout is torch.strided else 0
        except (RuntimeError, ValueError):
            continue  # no memory of its own, such as that of a lazy module
        # No values yet, or none at all.
        if not begin or not tensor.numel():
            continue
        last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
        end = begin + (last + 1) * tensor.element_size()
        yield _Place(name, tensor, kind, id(tensor) in trained, begin, end)


def _list_clusters(places: list[_Place]) -> Iterator[list[_Place]]:
    """Places whose bytes meet, from the first byte to the last."""
    cluster: list[_Place] = []
    end = 0
    for place in sorted(places, key=lambda place: place.begin):
        if cluster and place.begin >= end:
            yield cluster
            cluster = []
        cluster.append(place)
        end = max(end, place.end)
    yield cluster


def _find_shared(cluster: list[_Place]) -> tuple[_Place, _Place] | None:
    """A parameter that is trained and another tensor with elements of it. The columns of a
    matrix may meet and share none, so the elements are marked."""
    begin = cluster[0].begin
    unit = 0
    for place in cluster:
        unit = math.gcd(unit, place.begin - begin, place.tensor.element_size())
    marks = torch.zeros((max(p.end for p in cluster) - begin) // unit, dtype=torch.bool)

    def view(place: _Place) -> torch.Tensor:
        step = place.tensor.element_size() // unit
        # torch does not write to an element that a tensor has more than once.
        shape = [
            size if stride else 1
            for size, stride in zip(place.tensor.shape, place.tensor.stride(), strict=True)
        ]
        strides = [stride * step for stride in place.tensor.stride()]
        return marks.as_strided(
            [*shape, step], [*strides, 1], (place.begin - begin) // unit
        )

    trained = [place for place in cluster if place.is_trained]
    for place in [*trained, *(place for place in cluster if not place.is_trained)]:
        if view(place).any():
            marks.zero_()
            view(place).fill_(True)
            others = (p for p in trained if p is not place and view(p).any())
            return next(others), place
        if place.is_trained:
            view(place).fill_(True)
    return None


def _check_own_memory(name: str, parameter: torch.Tensor) -> None:
    if parameter.is_inference():
        raise ZeroOptError(
            f"parameter '{name}' was made in torch.inference_mode(), and torch counts no "
            "writes to it; make the model outside of it"
        )


def check_storages(
    trained: list[Named], frozen: list[Named], model: nn.Module | None
) -> None:
    """Refuses tensors that share memory with a parameter of |trained|. |frozen| are other
    parameters that the optimizer got."""
    for name, parameter in trained:
        _check_own_memory(name, parameter)
    ids = {id(parameter) for _, parameter in trained}
    seen: set[int] = set()
    places = [
        *_find_places(trained, "parameter", ids, seen),
        *_find_places(frozen, "parameter", ids, seen),
    ]
    if model is not None:
        places += _find_places(model.named_parameters(), "parameter", ids, seen)
        places += _find_places(model.named_buffers(), "buffer", ids, seen)
    for cluster in _list_clusters(places):
        if len(cluster) < 2 or not any(place.is_trained for place in cluster):
            continue
        if (pair := _find_shared(cluster)) is None:
            continue
        one, other = pair
        if other.kind == "buffer":
            raise ZeroOptError(
                f"buffer '{other.name}' shares memory with parameter '{one.name}', which "
                "the optimizer gives memory of its own; register a clone() of it"
            )
        raise ZeroOptError(
            f"parameters '{one.name}' and '{other.name}' share memory, and the optimizer "
            "gives each memory of its own; tie them with module.weight = other.weight, so "
            "that there is one parameter"
        )
