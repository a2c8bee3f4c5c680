# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the values of a model come from. Rank 0 reads them, one tensor at a time."""

from __future__ import annotations

import functools
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import torch
from torch import nn

from zero_opt.errors import ZeroOptError
from zero_opt.torch._ranks import Ranks

Weights: TypeAlias = (
    "str | os.PathLike[str] | Mapping[str, torch.Tensor] | Callable[[str], torch.Tensor]"
)
_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
# A tensor and its names. A tied parameter has several.
Wanted: TypeAlias = tuple[torch.Tensor, list[str]]


def _list_files(path: pathlib.Path) -> list[pathlib.Path]:
    """The files that |path| is: one, or those of an index or of a folder."""
    if path.is_dir():
        for name in ("model.safetensors.index.json", "model.safetensors"):
            if (path / name).exists():
                return _list_files(path / name)
        raise ZeroOptError(
            f"folder '{path}' has no model.safetensors and no "
            "model.safetensors.index.json; write them with save_pretrained(), or "
            "save_file() of safetensors"
        )
    if path.suffix != ".json":
        return [path]
    files = set(json.loads(path.read_text())["weight_map"].values())
    return [path.parent / name for name in sorted(files)]


def _open(path: pathlib.Path) -> dict[str, Any]:
    """The open file of each tensor of |path|."""
    from safetensors import safe_open

    files: dict[str, Any] = {}
    for file in _list_files(path):
        opened: Any = safe_open(file, framework="pt", device="cpu")
        files |= dict.fromkeys(opened.keys(), opened)
    return files


def describe(wanted: Wanted) -> str:
    tensor, names = wanted
    kind = "parameter" if isinstance(tensor, nn.Parameter) else "buffer"
    return f"{kind} '{names[0]}'"


def _describe_missing(where: str, wanted: Wanted, names: Iterable[str]) -> str:
    text = f"{where} has no {describe(wanted)}"
    if wanted[0].is_meta and not isinstance(wanted[0], nn.Parameter):
        return (
            f"{text}, which is on the meta device; make the model within "
            "zo.empty_parameters(), where buffers have values"
        )
    return f"{text}; its first tensor is '{next(iter(names), '')}'"


def _read_from(found: Any, name: str) -> Any:
    """|found| is a tensor, or the file that has it."""
    return found if isinstance(found, torch.Tensor) else found.get_tensor(name)


def _agree(ranks: Ranks, body: Callable[[], None]) -> None:
    """Runs |body| on rank 0. An error is one on all ranks."""
    message = None
    if ranks.rank == 0:
        try:
            body()
        except ZeroOptError as error:
            message = str(error)
        except Exception as error:  # of files, or of the caller's function
            message = f"weights cannot be read: {type(error).__name__}: {error}"
    if message := ranks.broadcast(message):
        raise ZeroOptError(message)


class Source:
    """|weights| is a safetensors file, its index, a folder of such files, a mapping from
    names to tensors, or a function. Only rank 0 needs it."""

    def __init__(self, weights: Weights, ranks: Ranks) -> None:
        self._weights: Any = weights
        self._ranks = ranks
        # On rank 0: what reads a tensor, by the id of the wanted one.
        self._readers: dict[int, Callable[[], Any]] = {}

    def find(self, wanted: Iterable[Wanted]) -> None:
        """Finds all values, before any is read."""
        _agree(self._ranks, lambda: self._find_all(wanted))

    def _find_all(self, wanted: Iterable[Wanted]) -> None:
        weights = self._weights
        if callable(weights):
            self._readers = {
                id(tensor): functools.partial(weights, names[0]) for tensor, names in wanted
            }
            return
        if isinstance(weights, Mapping):
            where, files = "weights", weights
        else:
            where, files = f"'{weights}'", _open(pathlib.Path(weights))
        for tensor, names in wanted:
            name = next((name for name in names if name in files), None)
            if name is None:
                raise ZeroOptError(_describe_missing(where, (tensor, names), files))
            found = files[name]
            is_tensor = isinstance(found, torch.Tensor)
            shape = found.shape if is_tensor else found.get_slice(name).get_shape()
            if tuple(shape) != tuple(tensor.shape):
                raise ZeroOptError(
                    f"'{name}' in {where} has shape {tuple(shape)}, expected "
                    f"{tuple(tensor.shape)}"
                )
            self._readers[id(tensor)] = functools.partial(_read_from, found, name)

    def read(self, wanted: Wanted, device: torch.device) -> torch.Tensor:
        """The values for a tensor, on all ranks."""
        tensor, names = wanted
        # That of a parameter without values would have strides of none.
        values = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)

        def read() -> None:
            found = self._readers[id(tensor)]()
            if not isinstance(found, torch.Tensor) or found.shape != values.shape:
                what = getattr(found, "shape", type(found).__name__)
                raise ZeroOptError(
                    f"weights('{names[0]}') is {what}, expected a tensor of shape "
                    f"{tuple(values.shape)}"
                )
            if found.dtype not in _DTYPES and values.is_floating_point():
                raise ZeroOptError(
                    f"'{names[0]}' has the values of {found.dtype}, expected float32, "
                    "bfloat16, float16 or float64; convert the model first"
                )
            values.copy_(found.detach())

        _agree(self._ranks, read)
        self._ranks.broadcast_tensors([values])
        return values.detach()
