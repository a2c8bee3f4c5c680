# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers that are written as IR: Adamax, which the package does not have."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import torch
from models import make_model
from ranks import Workers
from test_optimizers import train
from test_state import is_equal, run, through_a_file
from torch import nn
from training import get_rank

import zero_opt.torch as zo
from zero_opt import ZeroOptError

ADAMAX = pathlib.Path(__file__).parents[2] / "examples/adamax.mlir"
HYPER = {"lr": 1e-2, "wd": 0.1, "beta2": 0.9}


def make(params: Any, **step: Any) -> zo.Optimizer:
    return zo.Optimizer(params, ADAMAX, HYPER, **step)


def test_formula() -> None:
    def change(group: dict[str, Any], step: int) -> None:
        group["lr"] = 0.01 / (1 + step)
        group["wd" if "wd" in group else "weight_decay"] = 0.1 * step

    options = {"lr": 1e-2, "weight_decay": 0.1, "betas": (0.9, 0.9)}
    train(make, lambda params: torch.optim.Adamax(params, **options))
    train(make, lambda params: torch.optim.Adamax(params, **options), change)
    with pytest.raises(AssertionError):  # the test can fail
        options["betas"] = (0.9, 0.8)
        train(make, lambda params: torch.optim.Adamax(params, **options))


def test_text_groups_and_defaults() -> None:
    model = nn.Linear(3, 2)
    groups = [{"params": model.weight, "lr": 0.5}, {"params": model.bias}]
    optimizer = zo.Optimizer(groups, ADAMAX.read_text(), {"lr": 0.25})
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.25]
    before = [p.detach().clone() for p in model.parameters()]
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    # The first step is lr, whatever the gradient is.
    for p, q, lr in zip(model.parameters(), before, (0.5, 0.25), strict=True):
        assert ((q - p) - lr).abs().max() < 1e-6
    entry = optimizer.state[model.weight]
    assert sorted(entry) == ["beta1_t", "m", "u"]
    assert entry["beta1_t"].item() == 0.9


def resume(model: Any, zero: int, to_rank_0: bool) -> bool:
    """Whether a run that was saved and loaded ends like one that was not."""
    ends = []
    for is_saved in (False, True):
        trained = make_model(model)
        optimizer = make(trained, zero=zero)
        run(trained, optimizer, range(3))
        if is_saved:
            save = optimizer.consolidate_state_dict if to_rank_0 else optimizer.state_dict
            saved = through_a_file({"m": trained.state_dict(), "o": save()})
            if to_rank_0 and torch.distributed.is_initialized():
                box = [saved]
                torch.distributed.broadcast_object_list(box, src=0)
                (saved,) = box
            optimizer.close()
            trained = make_model(model, seed=5)
            optimizer = make(trained, zero=zero)
            run(trained, optimizer, range(1))  # there is other state to be replaced
            trained.load_state_dict(saved["m"])
            optimizer.load_state_dict(saved["o"])
        run(trained, optimizer, range(3, 6))
        ends.append((trained.state_dict(), optimizer.state_dict()))
        optimizer.close()
    return is_equal(ends[0], ends[1])


@pytest.mark.parametrize("to_rank_0", [False, True])
def test_state_on_one_rank(to_rank_0: bool) -> None:
    assert resume("mlp", 1, to_rank_0)


@pytest.mark.parametrize("to_rank_0", [False, True])
@pytest.mark.parametrize("zero", [0, 1, 2])
def test_state_on_two_ranks(workers: Workers, zero: int, to_rank_0: bool) -> None:
    assert workers.run(resume, "mlp", zero, to_rank_0) == [True, True]


def save_one_element(folder: str) -> list[str]:
    """One rank has no element of the only parameter, and so no state of it."""
    model = nn.Linear(1, 1, bias=False)
    optimizer = make(model, zero=2)
    model(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    optimizer.save_checkpoint(folder)
    optimizer.load_checkpoint(folder)
    names = sorted(optimizer.state_dict()["state"][0])
    optimizer.close()
    return names


def test_a_rank_without_state(workers: Workers, tmp_path: pathlib.Path) -> None:
    names = ["beta1_t", "m", "u"]
    assert workers.run(save_one_element, str(tmp_path)) == [names, names]


# Its hyperparameter is an option of torch's SGD that the package does not have.
SGD = """
zero.optimizer @mine hyper [lr, dampening = 0.0] state [b] {
^prepare(%lr: f64, %dampening: f64):
  %one = arith.constant 1.0 : f64
  %step = arith.negf %lr : f64
  %rest = arith.subf %one, %dampening : f64
  zero.yield %step, %rest : f64, f64
} update {
^update(%g: f32, %p: f32, %b: f32, %step: f32, %rest: f32):
  %b1 = math.fma %g, %rest, %b : f32
  %p1 = math.fma %b1, %step, %p : f32
  zero.yield %p1, %b1 : f32, f32
}
"""


def test_names_that_torch_has_for_something_else() -> None:
    models = [nn.Linear(3, 2) for _ in range(2)]
    hyper = [{"lr": 0.1, "dampening": 0.5}, {"lr": 0.2, "dampening": 0.0}]
    first, second = (
        zo.Optimizer([{"params": m, "dampening": h["dampening"]}], SGD, h)
        for m, h in zip(models, hyper, strict=True)
    )
    models[0](torch.ones(1, 3)).sum().backward()
    before = models[0].weight.detach().clone()
    first.step()
    assert torch.equal(models[0].weight, before - 0.05)
    second.load_state_dict(through_a_file(first.state_dict()))
    betas = SGD.replace("dampening", "betas")
    zo.Optimizer(nn.Linear(2, 2), betas, {"lr": torch.tensor(0.1), "betas": -3}).close()
    (group,) = second.param_groups
    assert (group["lr"], group["dampening"]) == (0.1, 0.5)


def test_an_option_that_no_step_reads() -> None:
    message = (
        "in parameter group 0, 'wd' is a hyperparameter that the step has as a constant; "
        "add it to hyper"
    )
    model = nn.Linear(3, 2)
    groups = [{"params": model.weight, "wd": 0.5}, {"params": model.bias, "tag": "b"}]
    with pytest.raises(ZeroOptError) as raised:
        zo.Optimizer(groups, ADAMAX, {"lr": 0.1})
    assert str(raised.value) == message
    optimizer = zo.Optimizer(model, ADAMAX, {"lr": 0.1})
    optimizer.param_groups[0]["wd"] = 0.1
    model(torch.ones(1, 3)).sum().backward()
    with pytest.raises(ZeroOptError) as raised:
        optimizer.step()
    assert str(raised.value) == message
    # As schedules change them.
    model = nn.Linear(2, 2)
    optimizer = make(model)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == HYPER["lr"] / 2


def differ() -> None:
    ir = ADAMAX.read_text()
    make_other = ir.replace("%ratio, %step, %p", "%ratio, %step, %m") if get_rank() else ir
    zo.Optimizer(nn.Linear(2, 2), make_other, HYPER)


def lack_the_file() -> None:
    zo.Optimizer(nn.Linear(2, 2), "none.mlir" if get_rank() else ADAMAX, HYPER)


def test_a_file_that_one_rank_lacks(workers: Workers) -> None:
    for message in workers.run_failing(lack_the_file):
        assert message == (
            "ZeroOptError: rank 1: the optimizer is IR, or a file of it, and 'none.mlir' "
            "cannot be read: No such file or directory"
        )


def test_ranks_with_different_optimizers(workers: Workers) -> None:
    for message in workers.run_failing(differ):
        assert message == (
            "ZeroOptError: rank 1 has another optimizer as IR than rank 0; create the same "
            "optimizer on all ranks"
        )


@pytest.mark.parametrize(
    "ir, hyper, message",
    [
        (
            "none.mlir",
            HYPER,
            "the optimizer is IR, or a file of it, and 'none.mlir' cannot be read: No such "
            "file or directory",
        ),
        (
            "adamw",
            HYPER,
            "the optimizer is IR, or a file of it, and 'adamw' cannot be read: No such "
            "file or directory",
        ),
        (
            ADAMAX,
            {"lr": 0.1, "momentum": 0.9},
            "the step cannot be compiled: group 'group0' has a value of 'momentum', and "
            "adamax has no such hyperparameter",
        ),
        (ADAMAX, {"wd": 0.1}, "the optimizer needs a value of 'lr'; add it to hyper"),
        (ADAMAX, {"lr": "fast"}, "lr must be a finite number, got 'fast'"),
        (ADAMAX, {"lr": float("nan")}, "lr must be a finite number, got nan"),
        (ADAMAX, {"lr": True}, "lr must be a finite number, got True"),
        (ADAMAX, {"lr": 10**400}, f"lr must be a finite number, got {10**400}"),
        (
            ADAMAX,
            None,
            "hyper has values of hyperparameters by name, got NoneType; pass a dict, such "
            "as {'lr': 1e-3}",
        ),
        (
            b"zero.optimizer",
            HYPER,
            "the optimizer is IR, or a file of it, got bytes; pass a text with "
            "zero.optimizer, or a path",
        ),
        (
            "a\0b",
            HYPER,
            "the optimizer is IR, or a file of it, and 'a\\x00b' cannot be read: embedded "
            "null byte",
        ),
        (
            ADAMAX,
            {"lr": 0.1, "params": 1.0},
            "hyperparameter 'params' has the name of an entry of torch's parameter groups; "
            "give it another name in the IR",
        ),
        (
            ADAMAX.read_text().replace("beta1_t = 1.0", "beta1.t = 1.0"),
            HYPER,
            "counter 'beta1.t' of the optimizer has a dot in its name; give it another one "
            "in the IR",
        ),
        (
            "zero.optimizer @half {",
            HYPER,
            "the step cannot be compiled: <optimizer>:1:22: custom op "
            "'zero.optimizer' expected 'hyper'",
        ),
        (
            ADAMAX.read_text() * 2,
            HYPER,
            "the step cannot be compiled: <optimizer>:33:1: redefinition of symbol named "
            "'adamax'",
        ),
        (
            ADAMAX.read_text().replace("math.absf %decayed", "math.erf %decayed"),
            HYPER,
            "the step cannot be compiled: 'math.erf' op is not known to the proof",
        ),
    ],
)
def test_refused(ir: Any, hyper: dict[str, Any], message: str) -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(ZeroOptError) as raised:
        zo.Optimizer(model, ir, hyper)
    assert str(raised.value) == message
    assert not model.weight._post_accumulate_grad_hooks
