# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Universal checkpoints: those that DeepSpeed 0.19.8 has written, and our own."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import shutil
import tarfile
from typing import Any

import pytest
import torch
from ranks import Workers
from test_state import is_equal
from test_written import ADAMAX
from torch import nn
from training import get_rank
from universal import compute_loss, list_groups, make_model

import zero_opt.torch as zo
from zero_opt import ZeroOptError

WRITTEN = pathlib.Path(__file__).parent / "universal_checkpoints"
# The stage of DeepSpeed that saved, and the type of its model.
SAVED = {"stage1": torch.bfloat16, "stage3": torch.float32}
# Of losses of about 1.
BOUND = 2e-7


@pytest.fixture(params=SAVED)
def saved(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / str(request.param)
    with tarfile.open(WRITTEN / f"{request.param}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def make(dtype: torch.dtype, zero: int, kind: Any = zo.AdamW) -> tuple[nn.Module, Any]:
    model = make_model(dtype, seed=5)
    units = {"units": [nn.Linear]} if zero == 3 else {}
    groups = [
        group | {"params": [(n, p) for n, p in model.named_parameters() if p in ours]}
        for group in list_groups(model)
        if (ours := set(group["params"]))
    ]
    return model, kind(groups, lr=1e-2, max_norm=1.0, zero=zero, model=model, **units)


def train(model: nn.Module, optimizer: Any, steps: range) -> list[float]:
    losses = []
    for step in steps:
        loss = compute_loss(model, step, get_rank())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def load_and_train(folder: str, dtype: torch.dtype, zero: int, number: int) -> list[float]:
    model, optimizer = make(dtype, zero)
    train(model, optimizer, range(1))  # there is other state to be replaced
    assert optimizer.load_universal_checkpoint(folder) == number
    losses = train(model, optimizer, range(3, 6))
    optimizer.close()
    return losses


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_from_deepspeed(workers: Workers, saved: pathlib.Path, zero: int) -> None:
    found = workers.run(load_and_train, str(saved), SAVED[saved.name], zero, 3)
    expected = json.loads((saved / "losses.json").read_text())
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs, abs=BOUND, rel=0)


def test_the_state_is_that_of_deepspeed(saved: pathlib.Path) -> None:
    """All bits, on one rank, and without the number in the name of the folder."""
    model, optimizer = make(SAVED[saved.name], 0)
    optimizer.load_universal_checkpoint(saved / "step3")
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        state = optimizer.state[parameter]
        for entry, file in (
            ("exp_avg", "exp_avg"),
            ("exp_avg_sq", "exp_avg_sq"),
            ("master", "fp32"),
        ):
            expected = torch.load(saved / "step3/zero" / name / f"{file}.pt")
            if isinstance(expected, dict):
                expected = expected["param"]
            if entry == "master":
                assert torch.equal(parameter.flatten(), expected.flatten().to(parameter))
            if entry in state:
                found = state[entry].as_subclass(torch.Tensor)
                assert torch.equal(found, expected.flatten())
        # Rounded in each of three steps.
        assert state["beta2_t"].item() == pytest.approx(0.999**3, rel=1e-15)


def save(folder: str, dtype: torch.dtype, zero: int) -> Any:
    model, optimizer = make(dtype, zero)
    train(model, optimizer, range(3))
    optimizer.save_universal_checkpoint(folder, 3)
    whole = copy.deepcopy(optimizer.consolidate_model())
    state = optimizer.consolidate_state_dict().get("state", {})
    losses = train(model, optimizer, range(3, 6))
    optimizer.close()
    return whole, state, losses


def load(folder: str, dtype: torch.dtype, zero: int) -> Any:
    model, optimizer = make(dtype, zero)
    optimizer.load_universal_checkpoint(folder)
    whole = copy.deepcopy(optimizer.consolidate_model())
    state = optimizer.consolidate_state_dict().get("state", {})
    losses = train(model, optimizer, range(3, 6))
    optimizer.close()
    return whole, state, losses


@pytest.mark.parametrize("zero, other", [(1, 2), (2, 3), (3, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_round_trip(
    workers: Workers, tmp_path: pathlib.Path, dtype: torch.dtype, zero: int, other: int
) -> None:
    """With the same bits at another stage."""
    before = workers.run(save, str(tmp_path), dtype, zero)
    after = workers.run(load, str(tmp_path), dtype, other)
    for (_, _, losses), (_, _, others) in zip(before, after, strict=True):
        assert losses == others
    assert is_equal(before[0][1], after[0][1])
    assert all(torch.equal(v, after[0][0][k]) for k, v in before[0][0].items())
    # And on one rank.
    whole, state, _ = load(str(tmp_path), dtype, 0)
    assert is_equal(before[0][1], state)
    assert all(torch.equal(v, whole[k]) for k, v in before[0][0].items())


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_model_that_was_loaded_before(
    tmp_path: pathlib.Path, dtype: torch.dtype, assign: bool
) -> None:
    """What others wrote is saved, and does not take the place of what is loaded."""
    model, optimizer = make(dtype, 0)
    train(model, optimizer, range(1))
    other = make_model(dtype, seed=8)
    model.load_state_dict(copy.deepcopy(other.state_dict()), assign=assign)
    optimizer.save_universal_checkpoint(tmp_path, 1)
    optimizer.close()
    model, optimizer = make(dtype, 0)
    model.load_state_dict(make_model(dtype, seed=9).state_dict(), assign=assign)
    optimizer.load_universal_checkpoint(tmp_path)
    expected = {n: p for n, p in other.named_parameters() if p.requires_grad}
    for name, parameter in expected.items():
        found = torch.load(tmp_path / "global_step1/zero" / name / "fp32.pt")["param"]
        assert torch.equal(found.to(dtype), parameter)
        assert torch.equal(model.get_parameter(name), parameter)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    train(model, optimizer, range(1))
    for name, parameter in expected.items():
        assert torch.equal(model.get_parameter(name), parameter)


def damage(path: pathlib.Path, how: str) -> None:
    file = path / "step3/zero/first.weight/exp_avg.pt"
    if how == "removed":
        file.unlink()
    elif how == "truncated":
        file.write_bytes(file.read_bytes()[:-100])
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "pickle":
        torch.save({"param": os.system}, file)
    elif how == "shape":
        torch.save({"param": torch.zeros(7, 5)}, file)
    elif how == "type":
        torch.save({"param": torch.zeros(5, 7, dtype=torch.int32)}, file)
    elif how == "none":
        torch.save([1], file)
    elif how == "parameter":
        shutil.rmtree(file.parent)
    elif how == "step":
        for each in path.glob("step3/*.pt"):
            each.unlink()
        (file.parent / "step.pt").unlink(missing_ok=True)
    elif how == "count":
        torch.save(10**400, path / "step3/zero/last.weight/step.pt")
    elif how == "latest":
        (path / "latest_universal").write_bytes(b"\xff")
    elif how == "renamed":
        (path / "step3").rename(path / "step4")
    elif how == "folder":
        (path / "latest_universal").unlink()


FILE = "'{0}/step3/zero/first.weight/exp_avg.pt'"
AGAIN = "give the folder that ds_to_universal has written, or convert again"


@pytest.mark.parametrize(
    "how, message",
    [
        ("removed", FILE + " cannot be read: No such file or directory"),
        ("truncated", FILE + f" is damaged, or no file of torch.save; {AGAIN}"),
        ("empty", FILE + f" is damaged, or no file of torch.save; {AGAIN}"),
        (
            "pickle",
            FILE + f" has more than tensors and numbers, which could run code; {AGAIN}",
        ),
        (
            "shape",
            FILE + " has shape (7, 5), expected (5, 7); load the checkpoint of the same "
            "model",
        ),
        ("type", FILE + f" has torch.int32, expected dense float32; {AGAIN}"),
        ("none", FILE + f" has no tensor; {AGAIN}"),
        (
            "parameter",
            "'{0}/step3' has no parameter 'first.weight'; give the optimizer the model "
            "that was trained, so that names are the same",
        ),
        (
            "step",
            "'{0}/step3/zero/first.weight' has no number of steps: step.pt is absent or "
            f"damaged, and the model's files have none; {AGAIN}",
        ),
        (
            "count",
            "'{0}/step3/zero/last.weight' has no number of steps: step.pt is absent or "
            f"damaged, and the model's files have none; {AGAIN}",
        ),
        (
            "renamed",
            "'{0}/latest_universal' names 'step3', and there is no folder of this name "
            f"with a universal checkpoint; {AGAIN}",
        ),
        ("latest", "'{0}' cannot be read: UnicodeDecodeError: "),
        (
            "folder",
            "folder '{0}' has no universal checkpoint: there is no folder 'zero' and no "
            "file 'latest_universal' in it; convert a checkpoint of DeepSpeed with "
            "ds_to_universal.py first",
        ),
    ],
)
def test_damaged(saved: pathlib.Path, how: str, message: str) -> None:
    """An error, and nothing is written."""
    model, optimizer = make(SAVED[saved.name], 0)
    train(model, optimizer, range(1))
    before = optimizer.state_dict(), model.state_dict()
    damage(saved, how)
    with pytest.raises(ZeroOptError) as raised:
        optimizer.load_universal_checkpoint(saved)
    assert str(raised.value).startswith(message.format(saved))
    assert is_equal(before, (optimizer.state_dict(), model.state_dict()))


def test_errors_of_one_rank(workers: Workers, saved: pathlib.Path) -> None:
    """A rank that cannot read or write is an error on all ranks."""
    for message in workers.run_failing(load_on_one, str(saved)):
        assert message.startswith(
            "ZeroOptError: rank 1: folder '/nowhere' has no universal checkpoint"
        )
    for message in workers.run_failing(save_twice, str(saved)):
        assert message.endswith("global_step3 exists; give another number, or remove it")
    for message in workers.run_failing(save_what_is_no_value, str(saved / "other")):
        assert "global_step3' cannot be written: " in message
    for message in workers.run_failing(save_twice, "/dev/null"):
        assert "'/dev/null/global_step3' cannot be written: " in message


def load_on_one(folder: str) -> None:
    _, optimizer = make(torch.float32, 1)
    optimizer.load_universal_checkpoint("/nowhere" if get_rank() else folder)


def save_what_is_no_value(folder: str) -> None:
    model, optimizer = make(torch.float32, 1)
    optimizer.param_groups[0]["function"] = lambda: model
    optimizer.save_universal_checkpoint(folder, 3)


def save_twice(folder: str) -> None:
    model, optimizer = make(torch.float32, 1)
    for _ in range(2):
        optimizer.save_universal_checkpoint(folder, 3)
    del model


@pytest.mark.parametrize("name", ["a/b", "../x", "..", ".", "a/"])
def test_names_of_no_folder(tmp_path: pathlib.Path, name: str) -> None:
    trained, model = nn.Linear(2, 2), nn.Module()
    named = [(name, trained.weight), ("bias", trained.bias)]
    optimizer = zo.AdamW(named, model=model)
    for call in (
        lambda: optimizer.save_universal_checkpoint(tmp_path, 3),
        lambda: optimizer.load_universal_checkpoint(tmp_path),
    ):
        (tmp_path / "zero").mkdir(exist_ok=True)
        with pytest.raises(ZeroOptError) as raised:
            call()
        assert str(raised.value).startswith(f"parameter '{name}' has no name of a folder")
    assert [path.name for path in tmp_path.rglob("*")] == ["zero"]


@pytest.mark.parametrize("number", [1.5, "x", None, True, -3])
def test_numbers_of_checkpoints(tmp_path: pathlib.Path, number: Any) -> None:
    model = nn.Linear(2, 2)
    optimizer = zo.AdamW(model)
    with pytest.raises(ZeroOptError) as raised:
        optimizer.save_universal_checkpoint(tmp_path, number)
    assert str(raised.value) == (
        f"the number of a checkpoint is that of steps, 0 or more, got {number!r}"
    )


def test_a_model_file_with_objects(saved: pathlib.Path) -> None:
    """Such as the client_state of a training script: only the number is lost."""
    for path in saved.glob("step3/*.pt"):
        torch.save({"client_state": pathlib.Path("x")}, path)
    model, optimizer = make(SAVED[saved.name], 0)
    if saved.name == "stage3":  # which has the number of steps nowhere else
        with pytest.raises(ZeroOptError, match="has no number of steps: step.pt is"):
            optimizer.load_universal_checkpoint(saved)
        return
    assert optimizer.load_universal_checkpoint(saved) == -1
    assert optimizer.state[model.get_parameter("scale")]["beta1_t"].item() < 0.75


def test_an_optimizer_that_calls_its_state_so(tmp_path: pathlib.Path) -> None:
    ir = ADAMAX.read_text().replace("state [m, u]", "state [exp_avg, exp_avg_sq]")
    optimizer = zo.Optimizer(nn.Linear(2, 2), ir, {"lr": 0.1})
    with pytest.raises(ZeroOptError, match="and the optimizer is IR; it is for AdamW and"):
        optimizer.save_universal_checkpoint(tmp_path, 1)


def test_names_are_those_of_the_model(tmp_path: pathlib.Path) -> None:
    model = nn.Linear(2, 2)
    optimizer = zo.AdamW(list(model.parameters()), model=model)
    optimizer.save_universal_checkpoint(tmp_path, 1)
    assert sorted(path.name for path in (tmp_path / "global_step1/zero").iterdir()) == [
        "bias",
        "optimizer_state.pt",
        "weight",
    ]
    optimizer.load_universal_checkpoint(tmp_path)


@pytest.mark.parametrize("kind", [zo.Lion, zo.SGD])
def test_other_optimizers(saved: pathlib.Path, kind: Any) -> None:
    optimizer = make(torch.float32, 0, kind)[1]
    for call in (
        lambda: optimizer.load_universal_checkpoint(saved),
        lambda: optimizer.save_universal_checkpoint(saved, 3),
    ):
        with pytest.raises(ZeroOptError, match=r"has the state of Adam, and \w+ has"):
            call()
