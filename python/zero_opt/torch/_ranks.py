# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ranks of torch.distributed: they find each other, and agree on one step.

torch's process group carries messages at creation only. The step has connections of its
own, because torch's collectives leave the order of additions open.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import secrets
import socket
import tempfile
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist

from zero_opt import _abi, _step, compiler
from zero_opt.errors import ZeroOptError


@dataclasses.dataclass(frozen=True)
class Ranks:
    """The ranks of a process group of torch; None if this process is alone."""

    group: Any
    rank: int
    size: int

    def broadcast(self, value: Any) -> Any:
        """|value| of rank 0."""
        if self.size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=self.first, group=self.group)
        return values[0]

    def gather(self, value: Any) -> list[Any]:
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value, group=self.group)
        return values

    def gather_to_first(self, value: Any) -> list[Any] | None:
        """The values of all ranks, on rank 0 only."""
        if self.size == 1:
            return [value]
        values: list[Any] | None = None if self.rank else [None] * self.size
        dist.gather_object(value, values, dst=self.first, group=self.group)
        return values

    def broadcast_tensors(self, tensors: Iterable[torch.Tensor]) -> None:
        """Rank 0's values for all ranks, as DistributedDataParallel sends them."""
        if self.size == 1:
            return
        for tensor in tensors:
            values = tensor.detach().contiguous()
            if values.numel():
                # As bytes: not every backend knows every dtype.
                content = values.reshape(-1).view(torch.uint8)
                dist.broadcast(content, src=self.first, group=self.group)
                # torch writes to no element that a tensor has more than once.
                if any(stride == 0 for stride in tensor.stride()):
                    tensor.data = values
                else:
                    tensor.detach().copy_(values)

    @property
    def first(self) -> int:
        """The global number of rank 0."""
        return 0 if self.group is None else dist.get_global_rank(self.group, 0)


def find_ranks(process_group: Any) -> Ranks:
    if not (dist.is_available() and dist.is_initialized()):
        started = os.environ.get("WORLD_SIZE", "1")
        if started != "1":
            raise ZeroOptError(
                f"WORLD_SIZE is {started}, and torch.distributed is not initialized: "
                "each rank would train alone; call "
                "torch.distributed.init_process_group() first"
            )
        return Ranks(None, 0, 1)
    rank = dist.get_rank(process_group)
    if rank < 0:
        raise ZeroOptError("this rank is not in the process group of the optimizer")
    return Ranks(process_group, rank, dist.get_world_size(process_group))


def _describe_machine() -> tuple[str, str]:
    """What is equal on ranks that reach each other at 127.0.0.1, and the host's name."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    network = os.stat("/proc/self/ns/net").st_ino
    return f"{boot}/{network}", socket.gethostname()


def _choose_host(ranks: Ranks) -> str:
    """Where the others find rank 0."""
    machines = ranks.gather(_describe_machine())
    if len({machine for machine, _ in machines}) == 1:
        return "127.0.0.1"
    # MASTER_ADDR is the address of global rank 0.
    address = os.environ.get("MASTER_ADDR") if ranks.first == 0 else None
    name: str = machines[0][1]
    return address or name


def connect(ranks: Ranks, timeout_s: float) -> _step.Group:
    """A process group of the runtime with these ranks. Rank 0 listens at a free port,
    and makes a secret that keeps other processes out."""
    if ranks.size == 1:
        return _step.Group(0, 1, None)
    host = _choose_host(ranks)
    options = _abi.new(
        _abi.TcpOptions,
        rank=ranks.rank,
        ranks=ranks.size,
        timeout_ms=int(timeout_s * 1000),
    )
    message: dict[str, Any] = {}
    if ranks.rank == 0:
        message = {"host": host, "secret": secrets.token_hex(32)}
        options.host = message["host"].encode()
        options.secret = message["secret"].encode()
        try:
            _abi.load().call("tcp_listen", options)
            message["port"] = options.port
        except ZeroOptError as error:
            message["error"] = str(error)
    message = ranks.broadcast(message)
    if "error" in message:
        raise ZeroOptError(f"rank 0 cannot listen: {message['error']}")
    if ranks.rank:
        options.host = message["host"].encode()
        options.secret = message["secret"].encode()
        options.port = message["port"]
    return _step.Group(ranks.rank, ranks.size, options)


def _find_difference(
    mine: compiler.StepDescription, first: compiler.StepDescription
) -> str | None:
    for ours, theirs in zip(mine.parameters, first.parameters, strict=False):
        if ours != theirs:
            return f": {ours.describe()}, and on rank 0 {theirs.describe()}"
    numbers = len(mine.parameters), len(first.parameters)
    if numbers[0] != numbers[1]:
        return f" has {numbers[0]} parameters, and rank 0 has {numbers[1]}"
    if mine.ir != first.ir:
        return " has another optimizer as IR than rank 0"
    if mine != first:
        return f" has the step {mine.describe()}, and rank 0 has {first.describe()}"
    return None


def compile_together(step: compiler.StepDescription, ranks: Ranks) -> bytes:
    """The library of |step|. Rank 0 compiles it, and sends it to the others."""
    difference = _find_difference(step, ranks.broadcast(step))
    for rank, found in enumerate(ranks.gather(difference)):
        if found:
            raise ZeroOptError(
                f"rank {rank}{found}; create the same optimizer on all ranks"
            )
    answer: dict[str, Any] = {}
    if ranks.rank == 0:
        try:
            answer["library"] = compiler.compile_step(step)
        except ZeroOptError as error:
            answer["error"] = str(error)
    answer = ranks.broadcast(answer)
    if "error" in answer:
        raise ZeroOptError(answer["error"])
    library: bytes = answer["library"]
    return library


def open_step(
    library: bytes, group: _step.Group, place: _step.Place, threads: int, timeout_s: float
) -> _step.Step:
    # The runtime keeps what it has read, so the file may go.
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "libtrain.so"
        path.write_bytes(library)
        return _step.Step(path, group, place, threads, timeout_s)
