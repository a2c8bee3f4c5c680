# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples with Trainer and Accelerate train, and end with the same loss if resumed."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import re
import runpy
import shutil
import sys

import pytest
from ranks import Workers

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from hugging_face import launched  # noqa: E402

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


def run(example: str, *arguments: str) -> list[float]:
    """The losses that the example writes."""
    argv, output = sys.argv, io.StringIO()
    sys.argv = [example, *arguments]
    try:
        with launched(), contextlib.redirect_stdout(output):
            runpy.run_path(str(EXAMPLES / example), run_name="__main__")
    finally:
        sys.argv = argv
    return [float(loss) for loss in re.findall(r" loss (\S+)", output.getvalue())]


def check(losses: list[float], resumed: list[float]) -> None:
    assert losses[-1] < losses[0] - 0.4
    assert losses[-len(resumed) :] == resumed


@pytest.mark.parametrize("ranks", [1, 2])
def test_trainer(workers: Workers, tmp_path: pathlib.Path, ranks: int) -> None:
    losses = []
    for options in ((), ("--resume",)):
        arguments = ("finetune_trainer.py", "--output", str(tmp_path), *options)
        run(*arguments) if ranks == 1 else workers.run(run, *arguments)
        state = json.loads((tmp_path / "checkpoint-20/trainer_state.json").read_text())
        losses.append([entry["loss"] for entry in state["log_history"] if "loss" in entry])
        for checkpoint in (15, 20):
            shutil.rmtree(tmp_path / f"checkpoint-{checkpoint}")
    assert len(losses[1]) == 4
    check(*losses)


@pytest.mark.parametrize("ranks", [1, 2])
def test_accelerate(workers: Workers, tmp_path: pathlib.Path, ranks: int) -> None:
    losses = []
    for options in ((), ("--resume",)):
        arguments = ("finetune_accelerate.py", "--output", str(tmp_path), *options)
        losses.append(run(*arguments) if ranks == 1 else workers.run(run, *arguments)[0])
    assert [len(found) for found in losses] == [6, 3]
    check(*losses)
