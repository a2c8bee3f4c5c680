#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a GPT with zero-opt, DDP, FSDP2 and DeepSpeed in turn, and prints a table.

Each contender has processes of its own, which wait while others train. All make one step
in each round, and the table has medians over the rounds. So other work on the machine
slows all of them: compare the rows of one run, and no times of different runs.

With --device cuda all ranks share one GPU, and NCCL goes over sockets of this machine: it
shows that bits travel and what is hidden behind work, and not the speed of a cluster.

DeepSpeed is measured where it can be imported:
  pip install --no-build-isolation deepspeed==0.19.8    with DS_BUILD_OPS=0
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import multiprocessing
import os
import pathlib
import socket
import statistics
import struct
import sys
import tempfile
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT), str(ROOT / "examples")]
REFERENCE = "one process in float32"


@dataclasses.dataclass(frozen=True)
class Work:
    ranks: int
    passes: int
    batch: int
    width: int
    layers: int
    dtype: str
    device: str = "cpu"
    words: int = 256
    length: int = 64


def count_bytes_sent() -> int:
    """Over the TCP connections that this process has: what the other end has confirmed."""
    total = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as connection:
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            total += struct.unpack_from("Q", info, 120)[0]  # tcpi_bytes_acked
        except OSError:
            continue
    return total


def read_memory(name: str) -> int:
    status = pathlib.Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith(name + ":"))
    return int(line.split()[1]) * 1024


class Memory:
    """Of this process, since it was made: at most, and on a GPU now, since what allocators
    have taken they keep."""

    def __init__(self, work: Work) -> None:
        self.is_gpu = work.device == "cuda"
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        self.before = self._read_gpu() if self.is_gpu else read_memory("VmRSS")

    def _read_gpu(self) -> int:
        import pynvml

        pynvml.nvmlInit()
        gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
        used = pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)
        return sum(each.usedGpuMemory or 0 for each in used if each.pid == os.getpid())

    def read(self) -> int:
        return (self._read_gpu() if self.is_gpu else read_memory("VmHWM")) - self.before


def synchronize(work: Work) -> None:
    if work.device == "cuda":
        import torch

        torch.cuda.synchronize()


def make_model(work: Work, dtype: str) -> Any:
    import torch
    from train_gpt import Gpt

    torch.manual_seed(0)
    model = Gpt(work.words, work.length, work.width, work.layers)
    return model.to(work.device, getattr(torch, dtype))


def make_batch(work: Work, step: int, number: int, rank: int) -> Any:
    """A text that can be learned: each token is the one before, plus 1 or 2."""
    import torch

    seed = (step * work.passes + number) * work.ranks + rank
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randint(1, 3, (work.batch, work.length + 1), generator=generator)
    return (steps.cumsum(1) % work.words).to(work.device)


def get_loss(model: Any, tokens: Any) -> Any:
    import torch.nn.functional as F

    logits = model(tokens[:, :-1]).float()
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def train_step(contender: Any, work: Work, step: int, rank: int | None) -> dict[str, Any]:
    """One step, of the batches of |rank| or of all ranks."""
    ranks = range(work.ranks) if rank is None else (rank,)
    batches = [(n, r) for n in range(work.passes) for r in ranks]
    tokens = [make_batch(work, step, n, r) for n, r in batches]
    synchronize(work)
    begin, total = time.perf_counter(), []
    for number, batch in enumerate(tokens):
        is_last = number == len(tokens) - 1
        if hasattr(contender, "prepare"):
            contender.prepare(is_last)
        loss = get_loss(contender.model, batch)
        contender.backward(loss, is_last)
        total.append(loss.detach())
    middle = time.perf_counter()
    contender.step()
    synchronize(work)
    end = time.perf_counter()
    mean = sum(loss.item() for loss in total) / len(total)
    return {"loss": mean, "time": end - begin, "step": end - middle}


def serve(orders: Connection, name: str, work: Work, rank: int | None, store: str) -> None:
    """Makes a step for each number that comes. None ends the process."""
    try:
        import torch
        import torch.distributed as dist
        from contenders import CONTENDERS, Reference

        torch.set_num_threads(1)
        if name.startswith("DeepSpeed"):
            # It prints through all of these.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.environ |= {"DS_ACCELERATOR": "cpu", "DS_BUILD_OPS": "0"}
            os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(work.ranks)}
            os.environ |= {"LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1"}
            import deepspeed  # noqa: F401
        # Libraries and their memory are the same for all.
        small = dataclasses.replace(work, width=32, layers=1)
        train_step(Reference(make_model(small, work.dtype), 1), small, 0, 0)
        memory = Memory(work)
        if rank is None:
            contender = Reference(make_model(work, "float32"), work.passes * work.ranks)
        else:
            if work.device == "cuda":
                # NCCL refuses two ranks of one machine on one GPU, so they pose as two.
                os.environ |= {"NCCL_HOSTID": f"{name}-{rank}", "NCCL_NET": "Socket"}
                os.environ |= {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
            backend = "cpu:gloo,cuda:nccl" if work.device == "cuda" else "gloo"
            dist.init_process_group(
                backend, init_method=f"file://{store}", rank=rank, world_size=work.ranks
            )
            contender = CONTENDERS[name](make_model(work, work.dtype), work.passes)
        orders.send({})
        while (step := orders.recv()) is not None:
            if rank is not None:
                dist.barrier()
            count = getattr(contender, "count_bytes_sent", count_bytes_sent)
            sent = count()
            answer = train_step(contender, work, step, rank)
            if rank is not None:
                dist.barrier()
            answer["sent"] = count() - sent
            answer["peak"] = memory.read()
            orders.send(answer)
    except Exception as error:
        last = traceback.format_exception_only(error)[-1].strip().splitlines()[0]
        orders.send({"error": last})


class Contender:
    """The processes of one contender."""

    def __init__(self, name: str, work: Work, folder: pathlib.Path) -> None:
        self.name = name
        self.steps: list[dict[str, float]] = []
        self.error = ""
        context = multiprocessing.get_context("spawn")
        self.pipes = []
        self.processes = []
        ranks = [None] if name == REFERENCE else list(range(work.ranks))
        for rank in ranks:
            mine, theirs = context.Pipe()
            process = context.Process(
                target=serve,
                args=(theirs, name, work, rank, str(folder / f"{hash(name)}")),
                daemon=True,
            )
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)
        self._read()

    def _read(self) -> list[dict[str, Any]]:
        answers = []
        for pipe in self.pipes:
            try:
                answer = pipe.recv() if pipe.poll(600) else {"error": "no answer"}
            except EOFError:
                answer = {"error": "a process ended"}
            if "error" in answer:
                self.error = answer["error"]
                for process in self.processes:  # the others wait for it
                    process.kill()
                return []
            answers.append(answer)
        return answers

    def make_step(self, number: int) -> None:
        if self.error:
            return
        for pipe in self.pipes:
            pipe.send(number)
        answers = self._read()
        if not answers:
            return
        whole = {key: max(answer[key] for answer in answers) for key in answers[0]}
        whole["loss"] = statistics.fmean(answer["loss"] for answer in answers)
        self.steps.append(whole)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()


def print_table(contenders: list[Contender], warm: int) -> None:
    reference = contenders[0]
    first = contenders[1]
    columns = (
        "ms a step",
        "of that step()",
        "ratio",
        "MB sent",
        "peak MB",
        "loss differs by",
    )
    print("| " + " | ".join(["", *columns]) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for contender in contenders:
        if contender.error:
            print(f"| {contender.name} | absent: {contender.error} |")
            continue
        measured = contender.steps[warm:]
        base = [step["time"] for step in first.steps[warm:]]
        times = [step["time"] for step in measured]
        # Of two steps of one round, which shared the machine with the same other work.
        ratio = statistics.median(a / b for a, b in zip(times, base, strict=True))
        gap = max(
            abs(a["loss"] - b["loss"])
            for a, b in zip(contender.steps, reference.steps, strict=True)
        )
        cells = [
            contender.name,
            f"{1e3 * statistics.median(times):.0f}",
            f"{1e3 * statistics.median(step['step'] for step in measured):.1f}",
            f"{ratio:.2f}",
            f"{statistics.median(step['sent'] for step in measured) / 1e6:.1f}",
            f"{measured[-1]['peak'] / 1e6:.0f}",
            f"{gap:.1e}",
        ]
        print("| " + " | ".join(cells) + " |")


def write_losses(contenders: list[Contender], path: pathlib.Path) -> None:
    """A line for each step, with the loss of each contender that made all steps."""
    whole = [each for each in contenders if not each.error]
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["step", *(each.name for each in whole)])
        for number, steps in enumerate(
            zip(*(each.steps for each in whole), strict=True), 1
        ):
            rows.writerow([number, *(step["loss"] for step in steps)])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--passes", type=int, default=4, help="backward passes a step")
    parser.add_argument("--batch", type=int, default=4, help="sequences a backward pass")
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--words", type=int, default=256)
    parser.add_argument("--length", type=int, default=64, help="tokens of a sequence")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument(
        "--only", default="", help="contenders, by a part of the name: 'stage 3,FSDP2'"
    )
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--warm", type=int, default=3, help="rounds that are not timed")
    parser.add_argument(
        "--losses", type=pathlib.Path, help="file for the loss curves, as CSV"
    )
    options = parser.parse_args()
    fields = [field.name for field in dataclasses.fields(Work)]
    work = Work(**{name: getattr(options, name) for name in fields})
    from contenders import CONTENDERS

    elements = sum(p.numel() for p in make_model(work, "float32").parameters())
    print(
        f"{elements / 1e6:.1f} million parameters in {work.dtype}, {work.ranks} ranks, "
        f"{work.passes} backward passes of {work.batch} x {work.length} tokens a step, "
        f"medians of {options.rounds} rounds",
        flush=True,
    )
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        contenders = []
        try:
            parts = options.only.split(",")
            names = [n for n in CONTENDERS if any(part in n for part in parts)]
            for name in (REFERENCE, *names):
                contenders.append(Contender(name, work, pathlib.Path(folder)))
            rounds = options.warm + options.rounds
            for number in range(rounds):
                print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
                # Each is the first in some rounds.
                begin = number % len(contenders)
                for contender in contenders[begin:] + contenders[:begin]:
                    contender.make_step(number)
        finally:
            for contender in contenders:
                contender.stop()
    print_table(contenders, options.warm)
    if options.losses:
        write_losses(contenders, options.losses)
    return 0


if __name__ == "__main__":
    sys.exit(main())
