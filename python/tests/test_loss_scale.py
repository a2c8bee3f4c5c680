# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""float16 with the step's own loss scale."""

from __future__ import annotations

import copy
import pathlib
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from models import make_model
from ranks import Workers
from torch import nn
from torch.utils.checkpoint import checkpoint
from training import get_rank

import zero_opt.torch as zo
from zero_opt import ZeroOptError


def test_the_rule_is_that_of_torch() -> None:
    """Over a step that is skipped, and until the scale grows."""
    ours, theirs = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizer = zo.SGD(ours, lr=1e-6, loss_scale="dynamic")
    reference = torch.optim.SGD(theirs.parameters(), lr=1e-6)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    scales = []
    for step in range(2010):
        x = torch.full((1, 2), torch.inf if step in (0, 1, 5) else 1.0)
        assert optimizer.loss_scale == scaler.get_scale()
        scales.append(optimizer.loss_scale)
        optimizer.scale(ours(x).sum()).backward()
        optimizer.step()
        assert optimizer.step_was_skipped == (step in (0, 1, 5))
        reference.zero_grad()
        scaler.scale(theirs(x).sum()).backward()
        scaler.step(reference)
        scaler.update()
    assert sorted(set(scales)) == [8192, 16384, 32768, 65536]
    assert scales[-1] == 16384


def train(zero: int, dtype: torch.dtype, scale: str | float) -> float:
    """The largest difference from torch's AdamW in f64 on the mean of the gradients of all
    ranks, which are scaled."""
    ranks = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    model = make_model("mlp", dtype)
    optimizer = zo.AdamW(model, lr=1e-2, zero=zero, loss_scale=scale, max_norm=0.5)
    copies = {
        name: nn.Parameter(p.detach().double())
        for name, p in model.named_parameters()
        if p.requires_grad
    }
    theirs = torch.optim.AdamW(copies.values(), lr=1e-2)
    arrived: dict[str, torch.Tensor] = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            p.register_hook(lambda g, name=name: arrived.__setitem__(name, g.double()))
    largest = 0.0
    generator = torch.Generator().manual_seed(get_rank())
    skipped = steps = 0
    while steps < 4:
        arrived.clear()
        with torch.autocast("cpu", torch.float16, enabled=dtype is torch.float32):
            loss = model.compute_loss(generator)
        factor = optimizer.loss_scale
        optimizer.scale(loss).backward()
        optimizer.step()
        skipped += optimizer.step_was_skipped
        if optimizer.step_was_skipped:
            continue
        steps += 1
        for name, p in copies.items():
            p.grad = arrived.get(name)
            if p.grad is not None:
                p.grad /= factor * ranks
                if ranks > 1:
                    torch.distributed.all_reduce(p.grad)
        present = [p for p in copies.values() if p.grad is not None]
        norm = torch.nn.utils.clip_grad_norm_(present, 0.5)
        assert optimizer.grad_norm == pytest.approx(norm.item(), rel=1e-6)
        theirs.step()
        for name, p in model.named_parameters():
            if name in copies and p.numel():
                values, unit = p.detach().double(), 0.0
                if dtype is torch.float16 and ranks == 1:
                    values = optimizer.state[p]["master"].view(p.shape).double()
                    assert torch.equal(values.half(), p.detach())
                elif dtype is torch.float16:
                    unit = 2.0**-11  # half a unit in the last place, below 2
                difference = (values - copies[name]).abs().max().item()
                largest = max(largest, difference - unit)
    # The gradient of a loss in float16 cannot be 65536.
    assert skipped == (dtype is torch.float16 and scale == "dynamic")
    optimizer.close()
    return largest


@pytest.mark.parametrize("scale", ["dynamic", 512.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_equals_torch(dtype: torch.dtype, scale: str | float) -> None:
    """float16 parameters with master weights, and float32 ones under autocast."""
    assert train(1, dtype, scale) < 1e-6


@pytest.mark.parametrize("zero", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_two_ranks(workers: Workers, dtype: torch.dtype, zero: int) -> None:
    assert max(workers.run(train, zero, dtype, "dynamic")) < 1e-6


def overflow_on_the_last_rank(zero: int) -> tuple[bool, float]:
    model = make_model("mlp", torch.float16)
    optimizer = zo.AdamW(model, lr=1e-2, zero=zero, loss_scale="dynamic")
    before = copy.deepcopy(model.state_dict())
    loss = model.compute_loss(torch.Generator().manual_seed(0))
    last = (torch.distributed.get_world_size() - 1) == get_rank()
    optimizer.scale(loss * (1e4 if last else 1)).backward()
    optimizer.step()
    assert all(torch.equal(p, before[name]) for name, p in model.state_dict().items())
    found = optimizer.step_was_skipped, optimizer.loss_scale
    optimizer.close()
    return found


def test_an_overflow_on_one_rank_skips_on_all(workers: Workers) -> None:
    for zero in (0, 2):
        assert workers.run(overflow_on_the_last_rank, zero) == [(True, 32768.0)] * 2


def test_a_loss_that_is_not_scaled() -> None:
    model = nn.Linear(3, 2)
    optimizer = zo.SGD(model, lr=1.0, loss_scale=8.0)
    message = r"backward\(\) of a loss that is not scaled, and the optimizer has a loss sca"
    with pytest.raises(ZeroOptError, match=message):
        model(torch.ones(1, 3)).sum().backward()
    optimizer.zero_grad()
    for _ in range(2):
        before = model.bias.detach().clone()
        optimizer.scale(model(torch.ones(1, 3)).sum()).backward()
        optimizer.step()
        torch.testing.assert_close(model.bias.detach(), before - 1)
        with pytest.raises(ZeroOptError, match=message):
            model(torch.ones(1, 3)).sum().backward()
        optimizer.zero_grad()
    assert optimizer.loss_scale == 8
    plain = zo.SGD(nn.Linear(3, 2))
    loss = torch.ones(())
    assert plain.scale(loss) is loss
    assert plain.loss_scale == 1


def test_each_pass_has_a_scaled_loss() -> None:
    model = nn.Linear(3, 2)
    optimizer = zo.SGD(model, lr=1.0, loss_scale=8.0)
    message = r"backward\(\) of a loss that is not scaled"

    def compute(is_checkpointed: bool = False) -> torch.Tensor:
        x = torch.ones(1, 3, requires_grad=is_checkpointed)
        if is_checkpointed:
            return checkpoint(model, x, use_reentrant=True).sum()
        return model(x).sum()

    def refuse(loss: torch.Tensor) -> None:
        with pytest.raises(ZeroOptError, match=message):
            loss.backward()

    optimizer.scale(compute()).backward()
    refuse(compute())
    optimizer.zero_grad()
    optimizer.scale(compute())  # to be logged
    optimizer.scale(compute().detach())
    refuse(compute())
    optimizer.scale(compute(True)).backward()
    refuse(compute(True))
    optimizer.zero_grad()
    before = model.bias.detach().clone()
    # Two passes of one loss; two losses in one pass; inner passes; gradients that an
    # earlier pass has scaled.
    scaled = optimizer.scale(compute())
    scaled.backward(retain_graph=True)
    scaled.backward()
    torch.autograd.backward([optimizer.scale(compute()), optimizer.scale(compute())])
    (optimizer.scale(compute(True) + compute(True)) / 2).backward()
    output = model(torch.ones(1, 3))
    (gradient,) = torch.autograd.grad(optimizer.scale(output.sum()), output)
    model(torch.ones(1, 3)).backward(gradient)
    refuse((model(torch.ones(1, 3)) * gradient).sum())
    loss = (model(torch.ones(1, 3)) * gradient).sum()
    optimizer.scale(loss / optimizer.loss_scale).backward()
    optimizer.step()
    torch.testing.assert_close(model.bias.detach(), before - 7)


def save_scale(folder: str) -> dict[str, Any]:
    model = nn.Linear(3, 2)
    optimizer = zo.AdamW(model, loss_scale="dynamic")
    for factor in (torch.inf, 1.0, 1.0):
        optimizer.scale(model(torch.ones(1, 3)).sum() * factor).backward()
        optimizer.step()
    dcp.save({"optim": optimizer}, checkpoint_id=folder)
    saved = optimizer.state_dict()
    optimizer.close()
    return {k: v.item() for k, v in saved["state"][0].items() if k.startswith("loss_")}


def test_checkpoints(workers: Workers, tmp_path: pathlib.Path) -> None:
    saved = workers.run(save_scale, str(tmp_path))
    assert saved == [{"loss_scale_scale": 32768.0, "loss_scale_clean": 2.0}] * 2
    optimizer = zo.AdamW(nn.Linear(3, 2), loss_scale="dynamic")
    dcp.load({"optim": optimizer}, checkpoint_id=str(tmp_path))
    assert optimizer.loss_scale == 32768
    state = optimizer.state_dict()
    other = zo.AdamW(nn.Linear(3, 2), loss_scale="dynamic")
    other.load_state_dict(state)
    assert other.state_dict()["state"][0]["loss_scale_clean"] == 2
    # What torch has does not say a scale.
    whole = optimizer.consolidate_state_dict()
    assert set(whole["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    other.load_state_dict(whole)
    assert other.loss_scale == 32768
    state["state"][0]["loss_scale_scale"] = torch.tensor(torch.inf)
    with pytest.raises(ZeroOptError, match="has 'loss_scale_scale' inf, expected a finite"):
        other.load_state_dict(state)


def test_a_parameter_with_the_name_of_a_loss_scale() -> None:
    parameter = nn.Parameter(torch.ones(3))
    optimizer = zo.AdamW([("loss_scale", parameter)], loss_scale=4.0)
    optimizer.scale(parameter.sum()).backward()
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["loss_scale_scale"] == 4
    assert optimizer.grad_norm == pytest.approx(3**0.5)
