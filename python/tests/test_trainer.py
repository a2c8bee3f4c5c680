# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trainer with a compiled step trains as transformers.Trainer does, and resumes."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Any

import pytest
import torch
from ranks import Workers

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from hugging_face import launched, make_gpt, make_rows  # noqa: E402
from test_state import is_equal  # noqa: E402
from transformers.models.gpt2.modeling_gpt2 import GPT2Block  # noqa: E402

import zero_opt.torch as zo  # noqa: E402
from zero_opt import ZeroOptError  # noqa: E402
from zero_opt.torch.trainer import Trainer  # noqa: E402

STEPS = 6
# Norms are sums in f64, and those of torch in f32. The largest difference was 1.0e-7.
BOUND = 1e-6


@dataclasses.dataclass
class Run:
    """What one rank logged, and its parameters at the end."""

    losses: list[float]
    norms: list[float]
    rates: list[float]
    evaluated: list[float]
    parameters: dict[str, torch.Tensor]
    schedule: int


def make_arguments(folder: str, **options: Any) -> Any:
    defaults: dict[str, Any] = {
        "max_steps": STEPS,
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 2,
        "learning_rate": 3e-3,
        "weight_decay": 0.1,
        "max_grad_norm": 0.5,
        "logging_steps": 1,
        "save_strategy": "no",
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "logging_nan_inf_filter": False,
    }
    return transformers.TrainingArguments(folder, **(defaults | options))


def read_parameters(trainer: Any) -> dict[str, torch.Tensor]:
    """At stage 3 on rank 0 only."""
    optimizer = getattr(trainer.optimizer, "optimizer", None)
    if isinstance(trainer, Trainer) and optimizer.is_sharded:
        return optimizer.consolidate_model()
    return {n: p.detach().clone() for n, p in trainer.model.named_parameters()}


def finish(trainer: Any, resume: str | None = None) -> Run:
    trainer.train(resume_from_checkpoint=resume)
    wrapped = trainer.model_wrapped
    assert getattr(wrapped, "_orig_mod", wrapped) is trainer.model
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    return Run(
        [entry["loss"] for entry in logged],
        [float(entry["grad_norm"]) for entry in logged],
        [entry["learning_rate"] for entry in logged],
        [e["eval_loss"] for e in trainer.state.log_history if "eval_loss" in e],
        read_parameters(trainer),
        trainer.lr_scheduler.last_epoch,
    )


def choose(zero: int) -> dict[str, Any]:
    return {"zero": zero, "units": [GPT2Block] if zero == 3 else None}


def train(folder: str, **options: Any) -> Run:
    with launched() as rank:
        arguments = make_arguments(folder, **options)
        # Rank 0's parameters count.
        return finish(Trainer(make_gpt(rank), arguments, train_dataset=make_rows(96)))


def measure_difference(run: Run, other: Run) -> float:
    """The largest relative difference of a loss or a norm."""
    pairs = list(zip(run.losses + run.norms, other.losses + other.norms, strict=True))
    return max(abs(a - b) / abs(b) for a, b in pairs)


@pytest.mark.parametrize(
    "optim, rate", [("adamw_torch_fused", 3e-3), ("adamw_torch", 3e-3), ("sgd", 0.3)]
)
def test_equals_transformers(
    workers: Workers, tmp_path: pathlib.Path, optim: str, rate: float
) -> None:
    """The same batches on one rank and on two, with tokens in different numbers."""
    folder = str(tmp_path)
    options = {"optim": optim, "learning_rate": rate}
    arguments = make_arguments(folder, gradient_accumulation_steps=4, **options)
    with launched():
        expected = finish(
            transformers.Trainer(make_gpt(0), arguments, train_dataset=make_rows(96))
        )
    assert min(expected.norms) > 0.5  # it clips
    alone = train(folder, gradient_accumulation_steps=4, **options)
    runs = workers.run(_train_with, folder, options)
    for run in (alone, *runs):
        assert measure_difference(run, expected) < BOUND
        assert run.rates == expected.rates
    for name, parameter in runs[0].parameters.items():
        assert torch.equal(parameter, runs[1].parameters[name])
    # Ranks that divide by their own tokens weigh them differently.
    options = options | {"average_tokens_across_devices": False}
    for run in workers.run(_train_with, folder, options):
        assert measure_difference(run, expected) > 100 * BOUND


def _train_with(folder: str, options: dict[str, Any]) -> Run:
    return train(folder, **options)


def resume(folder: str, zero: int, dtype: torch.dtype, use_cpu: bool = True) -> list[Run]:
    """A run, and one that begins in the middle of it, with dropout and evaluations."""
    runs = []
    with launched() as rank:
        for checkpoint in (None, f"{folder}/checkpoint-{STEPS // 2}"):
            model = make_gpt(rank if checkpoint is None else 9, 0.1, dtype)
            arguments = make_arguments(
                folder,
                save_strategy="steps",
                save_steps=STEPS // 2,
                eval_strategy="steps",
                eval_steps=2,
                use_cpu=use_cpu,
            )
            trainer = Trainer(
                model,
                arguments,
                **choose(zero),
                train_dataset=make_rows(96),
                eval_dataset=make_rows(8),
            )
            runs.append(finish(trainer, checkpoint))
    return runs


def check_resumed(run: Run, resumed: Run) -> None:
    assert len(run.losses) == STEPS and run.schedule == STEPS
    # The log of the first steps comes from the checkpoint.
    assert dataclasses.replace(run, parameters={}) == dataclasses.replace(
        resumed, parameters={}
    )
    for name, parameter in run.parameters.items():
        assert torch.equal(parameter, resumed.parameters[name])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_resumes(tmp_path: pathlib.Path, dtype: torch.dtype) -> None:
    check_resumed(*resume(str(tmp_path), 1, dtype))


@pytest.mark.parametrize(
    "zero, dtype",
    [
        (0, torch.float32),
        (1, torch.bfloat16),
        (2, torch.float32),
        (3, torch.float32),
        (3, torch.bfloat16),
    ],
    ids=str,
)
def test_resumes_on_two_ranks(
    workers: Workers, tmp_path: pathlib.Path, zero: int, dtype: torch.dtype
) -> None:
    ranks = workers.run(resume, str(tmp_path), zero, dtype)
    for runs in ranks:
        check_resumed(*runs)
    checkpoint = tmp_path / f"checkpoint-{STEPS}"
    saved = transformers.GPT2LMHeadModel.from_pretrained(checkpoint, dtype=dtype)
    last = dict(ranks[0][0].parameters)
    for name, parameter in saved.named_parameters():
        assert torch.equal(parameter, last[name])
    assert (checkpoint / "optimizer_rank1_of_2.pt").exists()


class Reader(transformers.TrainerCallback):
    """Keeps the whole state with which training begins."""

    def on_train_begin(self, *_: Any, optimizer: Any, **__: Any) -> None:
        self.state = optimizer.optimizer.consolidate_state_dict().get("state")


def read_whole_state(folder: str, zero: int, is_trained: bool) -> Any:
    """What all ranks have after training, or when they resume."""
    with launched() as rank:
        reader = Reader()
        trainer = Trainer(
            make_gpt(rank if is_trained else 9),
            make_arguments(folder, save_strategy="steps", save_steps=3, max_steps=3),
            **choose(zero),
            train_dataset=make_rows(96),
            callbacks=[reader],
        )
        if is_trained:
            trainer.train()
            reader.on_train_begin(optimizer=trainer.optimizer)
        else:
            trainer.train(resume_from_checkpoint=f"{folder}/checkpoint-3")
        return reader.state


def test_resumes_on_other_ranks(workers: Workers, tmp_path: pathlib.Path) -> None:
    """And at other stages."""
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    expected = read_whole_state(one, 1, True)
    assert is_equal(workers.run(read_whole_state, one, 2, False)[0], expected)
    expected = workers.run(read_whole_state, two, 2, True)[0]
    assert is_equal(read_whole_state(two, 1, False), expected)
    assert is_equal(workers.run(read_whole_state, two, 0, False)[0], expected)
    # And to stage 3 and back.
    assert is_equal(workers.run(read_whole_state, two, 3, False)[0], expected)
    three = str(tmp_path / "three")
    assert is_equal(workers.run(read_whole_state, three, 3, True)[0], expected)
    assert is_equal(workers.run(read_whole_state, three, 1, False)[0], expected)
    assert is_equal(read_whole_state(three, 2, False), expected)


def find_best(folder: str, zero: int) -> bool:
    """Whether a training ends with the best model, and not with the last."""
    with launched() as rank:
        arguments = make_arguments(
            folder,
            save_strategy="steps",
            save_steps=2,
            eval_strategy="steps",
            eval_steps=2,
            load_best_model_at_end=True,
            greater_is_better=True,  # the first one
        )
        rows = make_rows(96)
        trainer = Trainer(
            make_gpt(rank), arguments, **choose(zero), train_dataset=rows, eval_dataset=rows
        )
        run = finish(trainer)
        assert max(run.evaluated) > run.evaluated[-1]
        best = trainer.state.best_model_checkpoint
        evaluated = trainer.evaluate()["eval_loss"]
    saved = transformers.GPT2LMHeadModel.from_pretrained(best)
    return evaluated == max(run.evaluated) and all(
        torch.equal(parameter, run.parameters[name])
        for name, parameter in saved.named_parameters()
        if rank == 0 or zero != 3
    )


@pytest.mark.parametrize("zero", [2, 3])
def test_ends_with_the_best_model(
    workers: Workers, tmp_path: pathlib.Path, zero: int
) -> None:
    assert workers.run(find_best, str(tmp_path), zero) == [True, True]


class Stop(transformers.TrainerCallback):
    """Ends the training once, within the second step."""

    is_done = False

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 1 and not self.is_done:
            self.is_done = control.should_training_stop = True


def test_gradients_of_a_step_that_did_not_end(tmp_path: pathlib.Path) -> None:
    """The next training begins without them."""
    runs = []
    for kind in (transformers.Trainer, Trainer):
        with launched():
            trainer = kind(
                make_gpt(0),
                make_arguments(str(tmp_path)),
                train_dataset=make_rows(96),
                callbacks=[Stop()],
            )
            assert len(finish(trainer).losses) == 1
            runs.append(finish(trainer))
            assert len(runs[-1].losses) == STEPS
    assert measure_difference(runs[1], runs[0]) < BOUND


class Overflowing(transformers.Trainer):
    """The loss of rank 1, or of the only one, is infinite in the second step."""

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        loss = super().compute_loss(*args, **kwargs)
        is_last = self.args.process_index == self.args.world_size - 1
        return loss * (torch.inf if self.state.global_step == 1 and is_last else 1)


class Compiled(Trainer, Overflowing):
    """A script's own Trainer, with a compiled step."""


def overflow(folder: str) -> Run:
    with launched() as rank:
        arguments = make_arguments(folder, max_steps=3)
        return finish(Compiled(make_gpt(rank), arguments, train_dataset=make_rows(96)))


def test_skipped_steps_hold_the_schedule(workers: Workers, tmp_path: pathlib.Path) -> None:
    for run in (overflow(str(tmp_path)), *workers.run(overflow, str(tmp_path))):
        assert run.schedule == 2
        assert run.rates == pytest.approx([3e-3, 2e-3, 2e-3])
        assert not torch.isfinite(torch.tensor(run.norms[1]))
        assert all(p.isfinite().all() for p in run.parameters.values())


def resume_without_a_state(folder: str) -> None:
    train(folder, save_strategy="steps", save_steps=3)
    with launched() as rank:
        if rank == 1:
            os.remove(f"{folder}/checkpoint-3/optimizer_rank1_of_2.pt")
        rows = make_rows(96)
        finish(
            Trainer(make_gpt(0), make_arguments(folder), train_dataset=rows),
            f"{folder}/checkpoint-3",
        )


def test_refused(workers: Workers, tmp_path: pathlib.Path) -> None:
    folder = str(tmp_path)
    rows = make_rows(96)

    def start(
        message: str, optimizer: Any = None, resume: Any = None, **options: Any
    ) -> None:
        with launched(), pytest.raises(ZeroOptError, match=message):
            Trainer(
                model,
                make_arguments(folder, **options),
                train_dataset=rows,
                optimizers=(optimizer, None),
            ).train(resume_from_checkpoint=resume)

    model = make_gpt(0)
    start("Trainer would create Adafactor, which no step computes", optim="adafactor")
    start("the optimizer SGD reduces no", torch.optim.SGD(model.parameters()))
    start("the optimizer has max_norm None, and", zo.SGD(model))
    start("mixed precision is fp16, and", fp16=True)
    with launched(), pytest.raises(ZeroOptError, match="stage 3 shards the parameters of"):
        Trainer(model, make_arguments(folder), zero=3, train_dataset=rows).train()
    train(folder, save_strategy="steps", save_steps=3, save_only_model=True)
    start("has no state of the optimizer; resume", resume=f"{folder}/checkpoint-3")
    for message in workers.run_failing(resume_without_a_state, str(tmp_path / "two")):
        assert "has no state of the optimizer on rank 1 of 2; copy" in message
