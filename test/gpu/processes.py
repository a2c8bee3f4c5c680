# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs that may crash or hang, each with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Iterator, Mapping, Sequence

# Process groups that are running, and threads that are about to start one.
_running: set[int] = set()
_starting: set[int] = set()
# Set when this process was told to end. Then nothing starts.
_ending = threading.Event()
# A driver that hangs may keep a process that was killed.
KILL_SECONDS = 5.0


@dataclass(frozen=True)
class Task:
    """A program, and what its row is called."""
    name: str
    command: Sequence[str]
    limit: float
    environment: Mapping[str, str] = field(default_factory=dict)
    prints: bool = False  # as it goes, and nothing is kept


@dataclass(frozen=True)
class Ended:
    """What became of a program. Its status is None where it was killed after
    |seconds|, for want of an end, or not begun: |seconds| is 0."""
    task: Task
    status: int | None
    seconds: float
    output: str

    def describe_failure(self) -> str:
        """Empty where it ended by itself, with whatever status."""
        if self.status is None and not self.seconds:
            return "not begun: the time of this piece is over"
        if self.status is None:
            return f"hangs: killed after {self.seconds:.0f} s"
        if self.status < 0:
            return f"crashes: {signal.Signals(-self.status).name}"
        return ""


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _end(number: int, frame: types.FrameType | None) -> None:
    _ending.set()
    limit = time.monotonic() + KILL_SECONDS
    # This thread goes on where it was interrupted, so it would wait for itself.
    while _starting - {threading.get_ident()} and time.monotonic() < limit:
        time.sleep(0.01)
    groups = list(_running)
    for group in groups:
        _kill(group)
    # A killed process is there until its thread has waited for it.
    while any(map(_is_there, groups)) and time.monotonic() < limit:
        time.sleep(0.01)
    os._exit(128 + number)


def end_with_this_process() -> None:
    """What hangs does not keep the GPU when this process is told to end."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)


def run(task: Task, deadline: float) -> Ended:
    """Runs until it ends, its limit is over, or time.monotonic() is |deadline|."""
    begin = time.monotonic()
    limit = min(task.limit, deadline - begin)
    if limit <= 0:
        return Ended(task, None, 0.0, "")
    # Not a pipe, which a grandchild might keep open.
    with tempfile.TemporaryFile() as output:
        _starting.add(threading.get_ident())
        try:
            if _ending.is_set():
                return Ended(task, None, 0.0, "")
            # A session of its own, so that all it starts can be killed.
            process = subprocess.Popen(
                task.command, stdin=subprocess.DEVNULL,
                stdout=None if task.prints else output, stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **task.environment})
            _running.add(process.pid)
        except OSError as error:
            return Ended(task, 127, time.monotonic() - begin, str(error))
        finally:
            _starting.discard(threading.get_ident())
        status: int | None = None
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            _kill(process.pid)
            try:
                process.wait(KILL_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        _running.discard(process.pid)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Ended(task, status, time.monotonic() - begin, text)


def run_all(tasks: Sequence[Task], at_once: int, deadline: float) -> Iterator[Ended]:
    """Begins them in order; yields each when it has ended."""
    with ThreadPoolExecutor(max_workers=max(1, at_once)) as pool:
        for future in as_completed([pool.submit(run, task, deadline)
                                    for task in tasks]):
            yield future.result()
