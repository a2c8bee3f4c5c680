# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models without values, and where the values come from.

The parameters of such a model are on torch's meta device. Rank 0 reads them one at a time,
and each rank keeps what its step keeps: at stage 3 a slice. So no rank ever has the whole
model.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
from torch import nn

from zero_opt.errors import ZeroOptError
from zero_opt.torch._parameters import ListedGroup
from zero_opt.torch._ranks import Ranks

Weights: TypeAlias = "str | os.PathLike[str] | Callable[[str], torch.Tensor] | None"


@contextlib.contextmanager
def empty_parameters() -> Iterator[None]:
    """Modules that are made in this block have parameters on the meta device, and buffers
    with values."""
    module: Any = nn.Module
    register = module.register_parameter

    def register_empty(owner: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None and not parameter.is_meta:
            empty = torch.empty_like(parameter, device="meta")
            parameter = nn.Parameter(empty, requires_grad=parameter.requires_grad)
        register(owner, name, parameter)

    module.register_parameter = register_empty
    try:
        yield
    finally:
        module.register_parameter = register


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


def _describe(tensor: torch.Tensor, name: str) -> str:
    kind = "parameter" if isinstance(tensor, nn.Parameter) else "buffer"
    return f"{kind} '{name}'"


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


class Values:
    """The values of the parameters and buffers that are on the meta device."""

    def __init__(
        self,
        weights: Weights,
        device: Any,
        groups: list[ListedGroup],
        model: nn.Module | None,
    ) -> None:
        self._weights = weights
        # On rank 0: the open file of an empty tensor, and its name there, by id.
        self._places: dict[int, tuple[Any, str]] = {}
        # The empty tensors with their names, by id. A tied one has several names.
        self._empty: dict[int, tuple[torch.Tensor, list[str]]] = {}
        if model is not None:
            self._note(model.named_parameters(remove_duplicate=False))
        for group in groups:
            self._note(group.params)
        if model is not None:
            self._note(model.named_buffers(remove_duplicate=False))
        self._check_arguments(device)
        self._device = None if device is None else torch.empty((), device=device).device

    def _note(self, named: Any) -> None:
        for name, tensor in named:
            if tensor.is_meta:
                _, names = self._empty.setdefault(id(tensor), (tensor, []))
                names.append(name)

    def _check_arguments(self, device: Any) -> None:
        if not self._empty:
            if self._weights is None and device is None:
                return
            raise ZeroOptError(
                f"{'device' if self._weights is None else 'weights'} is for a model on the "
                "meta device, and this one has values; leave it out"
            )
        tensor, names = next(iter(self._empty.values()))
        if self._weights is None:
            raise ZeroOptError(
                f"{_describe(tensor, names[0])} is on the meta device; give the optimizer "
                "the values of the model, such as weights='model.safetensors', or give the "
                "model memory with to_empty(device=...)"
            )
        if device is None:
            raise ZeroOptError(
                f"{_describe(tensor, names[0])} is on the meta device; say where it goes, "
                "such as device='cpu'"
            )
        if (kind := torch.device(device).type) not in ("cpu", "cuda"):
            raise ZeroOptError(f"device is {kind}, expected the CPU or a GPU of CUDA")

    def find_device(self, tensor: torch.Tensor) -> torch.device:
        """Where |tensor| is or goes."""
        return self._device if self._device and self.has(tensor) else tensor.device

    def has(self, tensor: torch.Tensor) -> bool:
        return id(tensor) in self._empty

    def open(self, ranks: Ranks) -> None:
        """Finds all values, before any is read."""
        if self._empty and not callable(self._weights):
            _agree(ranks, self._find_all)

    def _find_all(self) -> None:
        assert self._weights is not None and not callable(self._weights)
        path = pathlib.Path(self._weights)
        files = _open(path)
        for tensor, names in self._empty.values():
            name = next((name for name in names if name in files), None)
            if name is None:
                raise ZeroOptError(
                    f"'{path}' has no {_describe(tensor, names[0])}"
                    + (
                        f"; its first tensor is '{next(iter(files), '')}'"
                        if isinstance(tensor, nn.Parameter)
                        else ", which is on the meta device; make the model within "
                        "zo.empty_parameters(), where buffers have values"
                    )
                )
            self._places[id(tensor)] = files[name], name
            shape = files[name].get_slice(name).get_shape()
            if tuple(shape) != tuple(tensor.shape):
                raise ZeroOptError(
                    f"'{name}' in '{path}' has shape {tuple(shape)}, expected "
                    f"{tuple(tensor.shape)}"
                )

    def _read(self, tensor: torch.Tensor, ranks: Ranks) -> torch.Tensor:
        """The values of |tensor|, which all ranks read."""
        values = torch.empty_like(tensor, device=self._device)
        _, names = self._empty[id(tensor)]

        def read() -> None:
            found: Any
            if callable(self._weights):
                found = self._weights(names[0])
            else:
                file, name = self._places[id(tensor)]
                found = file.get_tensor(name)
            if not isinstance(found, torch.Tensor) or found.shape != values.shape:
                what = getattr(found, "shape", type(found).__name__)
                raise ZeroOptError(
                    f"weights('{names[0]}') is {what}, expected a tensor of shape "
                    f"{tuple(values.shape)}"
                )
            values.copy_(found.detach())

        _agree(ranks, read)
        ranks.broadcast_tensors([values])
        return values.detach()

    def fill(self, parameter: torch.Tensor, ranks: Ranks) -> None:
        """Gives |parameter| its values, if it is empty. It stays the same object."""
        if not self.has(parameter):
            return
        values = nn.Parameter(self._read(parameter, ranks), parameter.requires_grad)
        # torch assigns no `.data` of another device.
        swap: Any = torch.utils.swap_tensors
        swap(parameter, values)
        del self._empty[id(parameter)]

    def share(
        self,
        trained: list[torch.Tensor],
        frozen: list[torch.Tensor],
        model: nn.Module | None,
        ranks: Ranks,
    ) -> None:
        """Rank 0's values for all ranks, but for empty parameters among |trained|: `fill`
        is for one after the other."""
        ranks.broadcast_tensors(p for p in trained if not self.has(p))
        known = {id(parameter) for parameter in trained}
        # A list of parameters need not have all of the model.
        others = [] if model is None else [p for p in model.parameters() if self.has(p)]
        for parameter in [*frozen, *others]:
            if id(parameter) not in known:
                self.fill(parameter, ranks)
        ranks.broadcast_tensors(frozen)
        if model is None:
            return
        for module in model.modules():
            for key, buffer in module._buffers.items():
                if buffer is not None and self.has(buffer):
                    module._buffers[key] = self._read(buffer, ranks)
        ranks.broadcast_tensors(model.buffers())
