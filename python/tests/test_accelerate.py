# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accelerate with a compiled step trains as with torch's AdamW, and resumes."""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any

import pytest
import torch
from ranks import Workers

accelerate = pytest.importorskip("accelerate")
pytest.importorskip("transformers")

from hugging_face import launched, make_gpt, make_rows  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers.models.gpt2.modeling_gpt2 import GPT2Block  # noqa: E402

import zero_opt.torch as zo  # noqa: E402
from zero_opt import ZeroOptError  # noqa: E402
from zero_opt.torch.accelerate import prepare  # noqa: E402

# Norms are sums in f64, and those of torch in f32. The largest difference was 8.5e-8.
BOUND = 1e-6
ADAMW = {"lr": 3e-3, "weight_decay": 0.1}


class Loop:
    """A training script with Accelerate."""

    def __init__(
        self,
        accumulation: int,
        zero: int | None,
        seed: int = 0,
        dropout: float = 0.0,
        cpu: bool = True,
    ) -> None:
        """|zero| is the stage; None trains with torch's AdamW."""
        self.accelerator = accelerate.Accelerator(
            cpu=cpu, gradient_accumulation_steps=accumulation
        )
        model = make_gpt(seed, dropout).to(self.accelerator.device)
        self.is_torch = zero is None
        if zero is None:
            optimizer: Any = torch.optim.AdamW(model.parameters(), **ADAMW)
            self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        else:
            units = {"units": [GPT2Block]} if zero == 3 else {}
            optimizer = zo.AdamW(model, **ADAMW, max_norm=0.5, zero=zero, **units)
            self.model, self.optimizer = prepare(self.accelerator, model, optimizer)
        rows = torch.utils.data.DataLoader(make_rows(96), batch_size=2)
        # Accelerate makes a step of a schedule for each rank.
        steps = 20 * self.accelerator.num_processes
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.5, steps)
        self.loader, self.schedule = self.accelerator.prepare(rows, schedule)
        self.batches = iter(self.loader)
        self.losses: list[float] = []
        self.norms: list[float] = []

    def run(self, steps: int, scale: float = 1.0) -> None:
        count = self.accelerator.gradient_accumulation_steps * steps
        for _ in range(count):
            batch = next(self.batches)
            with self.accelerator.accumulate(self.model):
                loss = scale * self.model(**batch).loss
                self.accelerator.backward(loss)
                if self.is_torch and self.accelerator.sync_gradients:
                    norm = self.accelerator.clip_grad_norm_(self.model.parameters(), 0.5)
                    self.norms.append(float(norm))
                self.optimizer.step()
                self.schedule.step()
                self.optimizer.zero_grad()
            self.losses.append(loss.item())
            if not self.is_torch and self.accelerator.sync_gradients:
                self.norms.append(self.optimizer.grad_norm)

    def get_parameters(self) -> dict[str, torch.Tensor]:
        """At stage 3 on rank 0 only."""
        if not self.is_torch and self.optimizer.is_sharded:
            return self.optimizer.optimizer.consolidate_model()
        return {n: p.detach().clone() for n, p in self.model.named_parameters()}


def train(accumulation: int, zero: int | None, cpu: bool = True) -> Any:
    with launched() as rank:
        loop = Loop(accumulation, zero, seed=rank, cpu=cpu)
        loop.run(6)
        return loop.losses, loop.norms, loop.get_parameters()


def test_equals_torch(workers: Workers) -> None:
    """The same batches on one rank and on two."""
    losses, norms, _ = train(4, None)
    assert min(norms) > 0.5  # it clips
    own = train(4, 0)
    assert own[0] == pytest.approx(losses, rel=BOUND)
    assert own[1] == pytest.approx(norms, rel=BOUND)
    ranks = workers.run(train, 2, 1)
    both = [loss for pair in zip(ranks[0][0], ranks[1][0], strict=True) for loss in pair]
    assert both == pytest.approx(losses, rel=BOUND)
    for rank in ranks:
        assert rank[1] == pytest.approx(norms, rel=BOUND)
    for name, parameter in ranks[0][2].items():
        assert torch.equal(parameter, ranks[1][2][name])


def resume(folder: str, zero: int, cpu: bool = True) -> bool:
    """Whether a run that is saved and loaded ends like one that goes on."""
    with launched() as rank:
        loop = Loop(2, zero, seed=rank, dropout=0.1, cpu=cpu)
        loop.run(3)
        loop.accelerator.save_state(folder)
        loop.run(3)
        expected = loop.get_parameters()
        loop.optimizer.optimizer.close()
    with launched():
        other = Loop(2, zero, seed=9, dropout=0.1, cpu=cpu)
        other.run(3)
        other.accelerator.load_state(folder)
        other.run(3)
        ends = expected, other.get_parameters()
        return (
            loop.losses[6:] == other.losses[6:]
            and loop.norms[3:] == other.norms[3:]
            and loop.schedule.state_dict() == other.schedule.state_dict()
            and all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
        )


def save_model(folder: str) -> bool:
    """What Accelerate saves of a model of which ranks have slices."""
    with launched() as rank:
        loop = Loop(1, 3, seed=rank)
        loop.run(1)
        loop.accelerator.save_model(loop.model, folder)
        state = loop.get_parameters()
    if rank:
        return not state
    saved = load_file(f"{folder}/model.safetensors")
    return all(torch.equal(values, state[name]) for name, values in saved.items())


def save_another() -> tuple[bool, str]:
    """A second model, of which each rank has all, is itself."""
    with launched() as rank:
        loop = Loop(1, 3, seed=rank)
        teacher = loop.accelerator.prepare_model(make_gpt(9), evaluation_mode=True)
        found = loop.accelerator.get_state_dict(teacher)
        own = {name: values.clone() for name, values in found.items()}
        is_right = all(
            torch.equal(own[name], values)
            for name, values in make_gpt(9).state_dict().items()
        )
        try:
            with tempfile.TemporaryDirectory() as folder:
                loop.accelerator.save_state(folder)
                loop.accelerator.load_state(folder)
        except ZeroOptError as error:
            return is_right, str(error)
        return is_right, "nothing was raised"


def test_another_model(workers: Workers) -> None:
    for is_right, message in workers.run(save_another):
        assert is_right and message.startswith("Accelerate would load 2 models, of which")


def test_saves_the_whole_model(workers: Workers, tmp_path: pathlib.Path) -> None:
    assert workers.run(save_model, str(tmp_path)) == [True, True]


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_resumes(workers: Workers, tmp_path: pathlib.Path, zero: int) -> None:
    assert resume(str(tmp_path / "alone"), zero)
    assert workers.run(resume, str(tmp_path / "two"), zero) == [True, True]
    assert (tmp_path / "two/optimizer_rank1_of_2.pt").exists()


def overflow() -> tuple[int, list[bool]]:
    with launched() as rank:
        loop = Loop(1, 1)
        skipped = []
        for step in range(3):
            # Only the last rank has a loss that is not finite.
            is_last = rank == loop.accelerator.num_processes - 1
            loop.run(1, torch.inf if step == 1 and is_last else 1.0)
            skipped.append(loop.accelerator.optimizer_step_was_skipped)
        return loop.schedule.scheduler.last_epoch, skipped


def test_skipped_steps_hold_the_schedule(workers: Workers) -> None:
    expected = [False, True, False]
    assert overflow() == (2, expected)
    assert workers.run(overflow) == [(4, expected)] * 2


def prepare_without_this_package() -> None:
    with launched():
        accelerator = accelerate.Accelerator(cpu=True)
        model = make_gpt(0)
        model, optimizer = accelerator.prepare(model, zo.AdamW(model))
        row = make_rows(1)[0]["input_ids"][None]
        accelerator.backward(model(input_ids=row, labels=row).loss)
        optimizer.step()


def test_refused(workers: Workers) -> None:
    model = make_gpt(0)
    with launched():
        accelerator = accelerate.Accelerator(cpu=True)
        with pytest.raises(ZeroOptError, match="the optimizer SGD reduces no"):
            prepare(accelerator, model, torch.optim.SGD(model.parameters()))
        prepare(accelerator, model, zo.SGD(model))
        for clip in (accelerator.clip_grad_norm_, accelerator.clip_grad_value_):
            with pytest.raises(ZeroOptError, match="no gradients in .grad to clip; give"):
                clip(model.parameters(), 1.0)
    for message in workers.run_failing(prepare_without_this_package):
        assert "call zero_opt.torch.accelerate.prepare(" in message
    with launched():
        accelerator = accelerate.Accelerator(cpu=True, mixed_precision="fp16")
        with pytest.raises(ZeroOptError, match="mixed precision is fp16, and"):
            prepare(accelerator, model, zo.SGD(make_gpt(0)))
