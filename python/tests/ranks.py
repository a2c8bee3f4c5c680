# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that are the ranks of torch.distributed, and run functions for tests.

They are started once: importing torch takes seconds.
"""

from __future__ import annotations

import multiprocessing
import pathlib
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.distributed as dist

# A rank that waits for ever fails its test and not the whole run.
LIMIT_S = 300


def _serve(rank: int, size: int, store: str, orders: Connection) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=size
    )
    while (order := orders.recv()) is not None:
        function, arguments = order
        try:
            orders.send((True, function(*arguments)))
        except Exception as error:
            orders.send((False, (type(error).__name__, str(error), traceback.format_exc())))


class RankError(Exception):
    """An exception on a rank: its type and its message."""


class Workers:
    def __init__(self, size: int, folder: pathlib.Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._ends: list[Connection] = []
        self._processes = []
        for rank in range(size):
            end, other = context.Pipe()
            process = context.Process(
                target=_serve, args=(rank, size, str(folder / "store"), other), daemon=True
            )
            process.start()
            self._ends.append(end)
            self._processes.append(process)

    def try_run(
        self, function: Callable[..., Any], *arguments: Any
    ) -> list[tuple[bool, Any]]:
        """For each rank whether |function| returned, and what it returned or raised."""
        for end in self._ends:
            end.send((function, arguments))
        answers = []
        for rank, end in enumerate(self._ends):
            if not end.poll(LIMIT_S):
                raise TimeoutError(f"rank {rank} did not answer in {LIMIT_S} s")
            answers.append(end.recv())
        return answers

    def run(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What |function| returns on each rank."""
        values = []
        for rank, (is_done, value) in enumerate(self.try_run(function, *arguments)):
            if not is_done:
                raise RankError(f"rank {rank}: {value[2]}")
            values.append(value)
        return values

    def run_failing(self, function: Callable[..., Any], *arguments: Any) -> list[str]:
        """What |function| raises on each rank."""
        messages = []
        for rank, (is_done, value) in enumerate(self.try_run(function, *arguments)):
            assert not is_done, f"rank {rank} raised nothing"
            messages.append(f"{value[0]}: {value[1]}")
        return messages

    def stop(self) -> None:
        for end in self._ends:
            end.send(None)
        for process in self._processes:
            process.join(LIMIT_S)
