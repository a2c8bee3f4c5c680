# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What backward passes deliver: each gradient once, in whatever way torch computes it."""

from __future__ import annotations

import contextlib
import copy
import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
from models import Mlp, make_model
from ranks import Workers
from torch import nn
from torch.utils.checkpoint import checkpoint
from training import get_rank

import zero_opt.torch as zo
from zero_opt import ZeroOptError, compiler

Loss = Callable[[nn.Module, torch.Tensor], torch.Tensor]


def make_layers() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh())


def plain(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).square().mean()


def twice(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(model(x)).square().mean()


def checkpointed(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return checkpoint(model, x, use_reentrant=False).square().mean()


def reentrant(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    x = x.clone().requires_grad_()
    return checkpoint(model, x, use_reentrant=True).square().mean()


def reentrant_twice(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The second segment and the code around it deliver the same parameters again."""
    x = x.clone().requires_grad_()
    x = checkpoint(model, x, use_reentrant=True)
    return model(checkpoint(model, x, use_reentrant=True)).square().mean()


LOSSES = [plain, twice, checkpointed, reentrant, reentrant_twice]


def compare_with_torch(loss: Loss, accumulation: int, zero: int) -> float:
    """The largest difference from torch's SGD on the mean gradient of all ranks."""
    model, other = make_layers(), make_layers()
    optimizer = zo.SGD(model, lr=0.5, zero=zero)
    reference = torch.optim.SGD(other.parameters(), lr=0.5)
    ranks = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    for step in range(3):
        for micro in range(accumulation):
            for rank in range(ranks):
                generator = torch.Generator().manual_seed(100 * step + 10 * micro + rank)
                x = torch.randn(4, 6, generator=generator)
                (loss(other, x) / ranks).backward()
                if rank == get_rank():
                    loss(model, x).backward()
        optimizer.step()
        reference.step()
        reference.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    difference = max((p - q).abs().max().item() for p, q in pairs)
    optimizer.close()
    return difference


@pytest.mark.parametrize("accumulation", [1, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_one_rank(loss: Loss, accumulation: int) -> None:
    assert compare_with_torch(loss, accumulation, zero=1) < 1e-6


@pytest.mark.parametrize("zero", [0, 1, 2])
@pytest.mark.parametrize("loss", LOSSES)
def test_two_ranks(workers: Workers, loss: Loss, zero: int) -> None:
    assert max(workers.run(compare_with_torch, loss, 2, zero)) < 1e-6


def test_two_losses_are_two_backward_passes() -> None:
    model, other = make_layers(), make_layers()
    optimizer = zo.SGD(model, lr=1.0)
    x = torch.randn(4, 6)
    for each in (model, other):
        out = each(x)
        out.mean().backward(retain_graph=True)
        out.square().mean().backward()
    optimizer.step()
    torch.optim.SGD(other.parameters(), lr=1.0).step()
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p, q)


def run_uneven() -> None:
    """Rank 1 makes one backward pass more than rank 0."""
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0, timeout=60)
    for _ in range(1 + get_rank()):
        model(torch.ones(2, 6)).mean().backward()
    optimizer.step()


def run_parts() -> None:
    """Rank 0 computes in two backward passes what rank 1 computes in two others."""
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0, timeout=60)
    first, second = model[0], model[2]
    parts = [[first, second], [first, second]] if get_rank() else [[first], [second]]
    for modules in parts:
        sum(module(torch.ones(2, 6)).mean() for module in modules).backward()
    optimizer.step()


def test_numbers_of_backward_passes(workers: Workers) -> None:
    for message in workers.run_failing(run_uneven):
        assert "backward passes" in message
        assert message.startswith("ZeroOptError")
    # The end of a pass is known, also where no parameter is delivered again.
    workers.run(run_parts)


def test_a_failed_backward_pass_leaves_a_usable_optimizer() -> None:
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0)

    def fail(gradient: torch.Tensor) -> None:
        raise ValueError("on purpose")

    handle = model[0].weight.register_hook(fail)
    with pytest.raises(ValueError, match="on purpose"):
        plain(model, torch.ones(2, 6)).backward()
    handle.remove()
    optimizer.zero_grad()
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.warns(UserWarning, match="without a backward pass"):
        optimizer.step()
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    plain(model, torch.ones(2, 6)).backward()
    optimizer.step()
    assert not torch.equal(model[0].weight, before[0])


def make_another_pass(zero: int) -> list[str]:
    """Rank 1 makes one pass more. What each rank then gets from its calls."""
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0, zero=zero)
    messages = []
    calls: list[Any] = [lambda: plain(model, torch.ones(2, 6)).backward()] * 2
    for call in [*calls[get_rank() == 0 :], optimizer.step, optimizer.step]:
        try:
            call()
        except ZeroOptError as error:
            messages.append(str(error))
            assert all(p.grad is None for p in model.parameters())
    optimizer.close()
    return messages


def test_a_pass_that_other_ranks_make_fail(workers: Workers) -> None:
    for messages in workers.run(make_another_pass, 2):
        first, *others = messages
        assert "rank 0 is in" in first
        for message in others:
            assert "can only be destroyed since" in message
            assert message.endswith("; close() the optimizer, and create a new one")
        assert others


def test_zero_grad_drops_gradients() -> None:
    model, other = make_layers(), make_layers()
    optimizer = zo.SGD(model, lr=1.0)
    (1000 * plain(model, torch.ones(2, 6))).backward()
    optimizer.zero_grad()
    for each in (model, other):
        plain(each, torch.ones(2, 6)).backward()
    optimizer.step()
    torch.optim.SGD(other.parameters(), lr=1.0).step()
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p, q)


def test_zero_grad_to_zeros() -> None:
    """A warning says once that it is as zero_grad() to None."""
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0, weight_decay=0.5)
    with pytest.warns(UserWarning, match="is left out of the step, and not upd") as caught:
        for _ in range(2):
            optimizer.zero_grad(set_to_none=False)
    assert len(caught) == 1 and caught[0].filename == __file__
    before = [p.detach().clone() for p in model.parameters()]
    model[0](torch.ones(2, 6)).sum().backward()
    optimizer.step()
    assert not torch.equal(model[0].weight, before[0])
    assert torch.equal(model[2].weight, before[2])


def share_values() -> list[torch.Tensor]:
    torch.manual_seed(get_rank())
    model = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 6))
    model[2].weight.requires_grad_(False)
    model[1].running_mean.fill_(get_rank())
    model[1].num_batches_tracked.fill_(get_rank())
    zo.SGD(model).close()
    return [tensor.detach().clone() for tensor in model.state_dict().values()]


def test_all_ranks_begin_with_the_values_of_rank_zero(workers: Workers) -> None:
    first, second = workers.run(share_values)
    assert len(first) == 9
    assert all(torch.equal(p, q) for p, q in zip(first, second, strict=True))
    assert first[6] == 0


def test_a_compiled_model() -> None:
    model, other = make_layers(), make_layers()
    optimizer = zo.SGD(model, lr=1.0)
    compiled = torch.compile(model, backend="aot_eager")
    for _ in range(2):
        plain(compiled, torch.ones(2, 6)).backward()
        plain(other, torch.ones(2, 6)).backward()
    optimizer.step()
    torch.optim.SGD(other.parameters(), lr=1.0).step()
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p, q)


def hold() -> list[int]:
    """Each parameter has a bucket, and gradients come in the opposite order. Returns how
    many gradients are held as each comes, and after the backward pass."""
    parameters = [nn.Parameter(torch.zeros(2000)) for _ in range(5)]
    named = [(f"p{number}", parameter) for number, parameter in enumerate(parameters)]
    whole = compiler.StepDescription.get_options
    with mock.patch.object(
        compiler.StepDescription,
        "get_options",
        lambda step: whole(step) | {"bucket-bytes": "4KiB"},
    ):
        optimizer = zo.SGD(named, lr=1.0, zero=2)
    numbers = []

    def look(gradient: torch.Tensor) -> None:
        numbers.append(len(optimizer._delivery._receiver._held))
        # What is free is used for other things.
        torch.full_like(gradient, 1000.0)

    for parameter in parameters:
        parameter.register_hook(look)
    gradients = [torch.full_like(p, float(f)) for f, p in enumerate(parameters, 1)]
    pairs = zip(gradients, parameters, strict=True)
    # The last addend has its gradient first, which is the first parameter's.
    sum((g * p).sum() for g, p in reversed(list(pairs))).backward()
    numbers.append(len(optimizer._delivery._receiver._held))
    optimizer.step()
    for gradient, parameter in zip(gradients, parameters, strict=True):
        torch.testing.assert_close(parameter.detach(), -gradient)
    optimizer.close()
    return numbers


def test_gradients_are_held_until_released(workers: Workers) -> None:
    assert workers.run(hold) == [[0, 1, 2, 3, 3, 0]] * 2


def test_gradients_that_the_caller_writes() -> None:
    model, other = make_layers(), make_layers()
    optimizer = zo.SGD(model, lr=1.0)
    for each in (model, other):
        for p in each.parameters():  # no gradient of torch has such strides
            values = torch.arange(p.numel(), dtype=torch.float32) / 64
            p.grad = values.view(p.shape).t() if p.ndim == 2 else values
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
    torch.optim.SGD(other.parameters(), lr=1.0).step()
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert p.grad is None
        assert torch.equal(p, q)


def test_a_gradient_that_is_not_finite_skips_the_step() -> None:
    model = make_layers()
    optimizer = zo.AdamW(model, lr=1.0)
    before = [p.detach().clone() for p in model.parameters()]
    (plain(model, torch.ones(2, 6)) * float("nan")).backward()
    optimizer.step()
    assert optimizer.step_was_skipped
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    plain(model, torch.ones(2, 6)).backward()
    optimizer.step()
    assert not optimizer.step_was_skipped
    assert not torch.equal(model[0].weight, before[0])


def run_with_hints(has_hint: bool) -> list[torch.Tensor]:
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0, zero=2)
    for step in range(2):
        for micro in range(2):
            # In the second step the last backward pass has a wrong hint.
            is_hinted = has_hint and (micro == 0 or step == 1)
            with optimizer.no_sync() if is_hinted else contextlib.nullcontext():
                plain(model, torch.full((2, 6), 1.0 + micro)).backward()
        optimizer.step()
    optimizer.close()
    return [p.detach().clone() for p in model.parameters()]


def test_no_sync_changes_no_bit(workers: Workers) -> None:
    without, hinted = (workers.run(run_with_hints, hint) for hint in (False, True))
    for p, q in zip(without[0] + without[1], hinted[0] + hinted[1], strict=True):
        assert torch.equal(p, q)


def test_closure() -> None:
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0)

    def closure() -> torch.Tensor:
        loss = plain(model, torch.ones(2, 6))
        loss.backward()
        return loss

    first = optimizer.step(closure)
    assert optimizer.step(closure) < first


def count_tensors() -> int:
    gc.collect()
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


def test_optimizers_leave_nothing_behind() -> None:
    model: Mlp = make_model("mlp")
    generator = torch.Generator().manual_seed(0)

    def use_one() -> weakref.ref[zo.AdamW]:
        optimizer = zo.AdamW(model, loss_scale="dynamic")
        optimizer.scale(model.compute_loss(generator)).backward()
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.load_state_dict(optimizer.consolidate_state_dict())
        assert optimizer.state[model.last.weight]["beta1_t"] == 0.9
        return weakref.ref(optimizer)

    def read_size() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    for _ in range(50):
        use_one()
    tensors, pages = count_tensors(), read_size()
    for _ in range(950):
        assert use_one()() is None
    assert count_tensors() == tensors
    assert all(not p._post_accumulate_grad_hooks for p in model.parameters())
    # A step of this model has more than 4 pages.
    assert read_size() - pages < 2 * 950
    model.compute_loss(generator).backward()
    assert model.last.weight.grad is not None


@pytest.mark.parametrize("make", [torch.optim.SGD, zo.SGD])
def test_a_graph_from_before_the_step(make: Any) -> None:
    """It has old activations, and new parameters."""
    model = make_layers()
    optimizer = make(model.parameters(), lr=0.5)
    loss = plain(model, torch.ones(2, 6))
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize(
    "dtype, other", [(torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16)]
)
def test_a_gradient_of_another_dtype(dtype: torch.dtype, other: torch.dtype) -> None:
    model = make_layers().to(dtype)
    optimizer = zo.SGD(model, lr=0.5)
    if not hasattr(model[0].weight, "grad_dtype"):
        pytest.skip("this torch has gradients of the parameter's dtype only")
    model[0].weight.grad_dtype = other
    message = f"'0.weight' has dtype {other}, and the parameter {dtype}"
    with pytest.raises(ZeroOptError, match=message):
        model(torch.ones(2, 6, dtype=dtype)).sum().backward()
    optimizer.zero_grad()


def test_a_gradient_that_is_negated_late() -> None:
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0)
    before = model[0].weight.detach().clone()
    gradient = torch.randn(before.shape)
    model[0].weight.grad = torch._neg_view(gradient)
    optimizer.step()
    assert torch.equal(model[0].weight, before + gradient)


def test_memory_of_a_closed_optimizer() -> None:
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0)
    step = weakref.ref(optimizer._step._lifetime)
    optimizer.close()
    assert step() is None


def test_memory_of_a_deleted_optimizer() -> None:
    """Parameters, and what others have of them, stay readable."""
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0)
    held = model[0].weight.detach()
    values = held.clone()
    step = weakref.ref(optimizer._step._lifetime)
    del optimizer
    gc.collect()
    assert step() is not None
    assert torch.equal(held, values)
    assert torch.equal(model[0].weight, values)
    assert model[0].weight.data_ptr() != held.data_ptr()
    del held
    assert step() is None
    copied = copy.deepcopy(model)
    assert torch.equal(copied[0].weight, values)


def test_a_closed_optimizer() -> None:
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0)
    optimizer.close()
    optimizer.close()
    for call in (
        optimizer.step,
        optimizer.state_dict,
        optimizer.consolidate_state_dict,
        lambda: optimizer.load_state_dict({}),
    ):
        with pytest.raises(ZeroOptError, match="the optimizer was closed; create a new"):
            call()
    zo.SGD(model, lr=1.0)
