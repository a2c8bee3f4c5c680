# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scripts that give parameters other memory for a while, and keep the old one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import zero_opt.torch as zo
from zero_opt.errors import ZeroOptError

Optimizer = Any


def make(
    kind: Any = None, dtype: torch.dtype = torch.float32
) -> tuple[nn.Module, Optimizer]:
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 2)).to(dtype)
    if kind is None:
        return model, zo.SGD(model, lr=0.1)
    return model, kind(model.parameters(), lr=0.1)


def run_both(
    train: Callable[[nn.Module, Optimizer], None], dtype: torch.dtype = torch.float32
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    results = []
    for kind in (None, torch.optim.SGD):
        model, optimizer = make(kind, dtype)
        train(model, optimizer)
        results.append([p.detach().clone() for p in model.parameters()])
    return results[0], results[1]


def pass_backward(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    dtype = next(model.parameters()).dtype
    x = torch.randn(6, 5, generator=generator).to(dtype)
    model(x).square().mean().backward()


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_of_other_values_update_the_old_ones(
    passes: int, dtype: torch.dtype
) -> None:
    """As quantized training does: forward and backward with weights of 1 bit."""

    def train(model: nn.Module, optimizer: Optimizer) -> None:
        for step in range(3):
            for number in range(passes):
                kept = [p.data for p in model.parameters()]
                for p in model.parameters():
                    p.data = p.data.sign() * 0.5
                pass_backward(model, 10 * step + number)
                for p, old in zip(model.parameters(), kept, strict=True):
                    p.data = old
            optimizer.step()
            optimizer.zero_grad()

    ours, theirs = run_both(train, dtype)
    tolerance = 1e-6 if dtype is torch.float32 else 2e-2
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=tolerance)


def test_values_that_stay_elsewhere_are_taken_over() -> None:
    def train(model: nn.Module, optimizer: Optimizer) -> None:
        for step in range(2):
            pass_backward(model, step)
            for p in model.parameters():
                p.data = p.data * 0.5
            optimizer.step()
            optimizer.zero_grad()

    ours, theirs = run_both(train)
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-6)


def test_swapped_averages_are_not_taken_for_weights(tmp_path: Any) -> None:
    model, optimizer = make()
    average = [torch.zeros_like(p) for p in model.parameters()]

    def swap() -> None:
        for place, p in enumerate(model.parameters()):
            p.data, average[place] = average[place], p.data

    pass_backward(model, 1)
    optimizer.step()
    optimizer.zero_grad()
    trained = [p.detach().clone() for p in model.parameters()]
    swap()
    with pytest.raises(
        ZeroOptError, match=r"'0.weight' was given other memory.*save_check"
    ):
        optimizer.save_checkpoint(str(tmp_path / "c"), number=1)
    with pytest.raises(ZeroOptError, match="given other memory.*step()"):
        optimizer.step()
    optimizer.zero_grad()
    swap()
    optimizer.save_checkpoint(str(tmp_path / "c"), number=1)
    for p, expected in zip(model.parameters(), trained, strict=True):
        assert torch.equal(p, expected)


def test_a_rewind_to_kept_memory_is_refused() -> None:
    model, optimizer = make()
    kept = [p.data for p in model.parameters()]
    for p in model.parameters():
        p.data = p.data.clone()
    pass_backward(model, 1)
    with pytest.raises(ZeroOptError, match=r"keep a clone\(\) of .data"):
        optimizer.step()
    assert len(kept) == 4


def test_a_parameter_that_was_replaced_for_a_probe_comes_back() -> None:
    def train(model: nn.Module, optimizer: Optimizer) -> None:
        pass_backward(model, 1)
        optimizer.step()
        optimizer.zero_grad()
        first = model[0]  # type: ignore[index]
        old = first.weight
        first.weight = nn.Parameter(torch.ones_like(old))
        pass_backward(model, 2)
        model.zero_grad()
        optimizer.zero_grad()
        first.weight = old
        pass_backward(model, 3)
        optimizer.step()

    ours, theirs = run_both(train)
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-6)


@pytest.mark.parametrize("option", ["nesterov", "maximize"])
def test_options_that_no_step_computes_are_refused_later_too(option: str) -> None:
    model, optimizer = make()
    pass_backward(model, 1)
    optimizer.step()
    optimizer.param_groups[0][option] = True
    pass_backward(model, 2)
    with pytest.raises(ZeroOptError, match=f"group 0, '{option}' is True, which no step"):
        optimizer.step()


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.Adam])
def test_decoupled_decay_is_not_loaded_as_l2(kind: Any) -> None:
    options = {} if kind is torch.optim.AdamW else {"decoupled_weight_decay": True}
    for decay in (0.0, 0.5):
        model, optimizer = make()
        optimizer.close()
        theirs = kind(model.parameters(), lr=0.01, weight_decay=decay, **options)
        pass_backward(model, 1)
        theirs.step()
        theirs.zero_grad()
        ours = zo.Adam(model, lr=0.01)
        if decay:
            with pytest.raises(ZeroOptError, match="'decoupled_weight_decay' True"):
                ours.load_state_dict(theirs.state_dict())
        else:
            ours.load_state_dict(theirs.state_dict())
        ours.close()


def test_a_wrapper_of_accelerate_is_refused() -> None:
    accelerate = pytest.importorskip("accelerate")
    model, optimizer = make()
    accelerator = accelerate.Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(model, optimizer)
    pass_backward(model, 1)
    with pytest.raises(ZeroOptError, match=r"accelerate.prepare\(accelerator"):
        accelerator.clip_grad_norm_(model.parameters(), 0.1)
    with pytest.raises(ZeroOptError, match=r"accelerate.prepare\(accelerator"):
        optimizer.step()
