# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of which a rank has pieces.

Such a tensor holds the pieces of this rank one after the other, and its attributes say
where they belong in the whole tensor, which has one dimension. The attributes are those of
torch.distributed.checkpoint.CheckpointableTensor: torch saves such a tensor on some ranks,
and loads it on others.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import torch

# An interval of elements.
Interval = tuple[int, int]


class Pieces(torch.Tensor):
    """The attributes stay in copies, such as those of `.to()`. torch.save writes a plain
    tensor with the attributes, which a file that is loaded with weights_only may have."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            result = function(*args, **(kwargs or {}))
            if type(result) is torch.Tensor and isinstance(args[0], Pieces):
                if result.shape != args[0].shape:
                    return result
                copied = result.as_subclass(Pieces)
                copied.__dict__.update(args[0].__dict__)
                return copied
        return result

    def __deepcopy__(self, memo: Any) -> Pieces:
        return self.clone()  # type: ignore[return-value]

    def __reduce_ex__(self, protocol: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            plain = self.as_subclass(torch.Tensor)
            plain.__dict__.update(self.__dict__)
            return torch.Tensor.__reduce_ex__(plain, protocol)  # type: ignore[no-untyped-call]


def make(intervals: Sequence[Interval], elements: int, dtype: torch.dtype) -> Any:
    """A tensor with room for |intervals| of a whole tensor of |elements|."""
    sizes = [end - begin for begin, end in intervals]
    tensor: Any = torch.empty(sum(sizes), dtype=dtype).as_subclass(Pieces)
    tensor.global_shape = (elements,)
    tensor.global_offsets = tuple((begin,) for begin, _ in intervals)
    tensor.local_offsets = tuple((sum(sizes[:i]),) for i in range(len(sizes)))
    tensor.local_sizes = tuple((size,) for size in sizes)
    return tensor


@functools.cache
def _is_known_to_torch() -> bool:
    try:
        from torch.distributed import checkpoint
    except ImportError:
        return False
    return hasattr(checkpoint, "CheckpointableTensor")


def protect(tensor: torch.Tensor) -> Any:
    """|tensor| as an entry of a state_dict. A torch that does not know the attributes would
    save the pieces of one rank as the whole tensor. It saves a tuple as an object of one
    rank, which is refused when it is loaded on another one."""
    return tensor if _is_known_to_torch() else (tensor,)


def unprotect(saved: Any) -> Any:
    return saved[0] if isinstance(saved, tuple) and len(saved) == 1 else saved


def get_elements(saved: torch.Tensor) -> int:
    """The number of elements of the whole tensor."""
    shape: tuple[int, ...] = getattr(saved, "global_shape", saved.shape)
    return torch.Size(shape).numel()


def _list(saved: Any) -> Iterable[tuple[int, torch.Tensor]]:
    if not hasattr(saved, "global_shape"):
        yield 0, saved.reshape(-1).cpu()
        return
    values = saved.as_subclass(torch.Tensor).cpu()
    for begin, local, size in zip(
        saved.global_offsets, saved.local_offsets, saved.local_sizes, strict=True
    ):
        yield begin[0], values[local[0] : local[0] + size[0]]


def find(saved: Iterable[torch.Tensor], begin: int, end: int) -> torch.Tensor | None:
    """Elements [begin, end) of the tensor of which |saved| are parts or the whole, if all
    of them are there."""
    pieces = sorted((p for s in saved for p in _list(s)), key=lambda piece: piece[0])
    found = []
    reached = begin
    for first, tensor in pieces:
        if first <= reached < first + tensor.numel():
            found.append(tensor[reached - first : end - first])
            reached = first + tensor.numel()
        if reached >= end:
            break
    if reached < end:
        return None
    return found[0] if len(found) == 1 else torch.cat(found)
