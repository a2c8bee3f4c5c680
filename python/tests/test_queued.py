# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the package does for a GPU, on the CPU: gradients go to the step in batches,
outcomes are read late, and writes are found by torch's counts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from models import make_model
from test_equality import (  # noqa: F401
    test_offload_alone,
    test_one_backward_alone,
    test_one_rank,
    test_the_bound_finds_a_wrong_factor,
)
from test_hooks import make_layers, plain
from test_loss_scale import *  # noqa: F403
from test_optimizers import *  # noqa: F403
from test_state import *  # noqa: F403
from test_taken_over import (  # noqa: F401
    test_moves_within_a_step,
    test_replaced_within_a_step,
    test_transposed_data,
)

import zero_opt.torch as zo
from zero_opt import ZeroOptError
from zero_opt.torch import _device, _receivers

# It writes through `.data`; and other processes do not have what this file replaces.
for _name, _test in list(globals().items()):
    if _name.startswith("test_offloaded_state") or (
        _name.startswith("test_") and "workers" in inspect.signature(_test).parameters
    ):
        del globals()[_name]


class QueuedDevice(_device.Device):
    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.is_queued = True


@pytest.fixture(autouse=True)
def queued(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_device, "Device", QueuedDevice)
    monkeypatch.setattr(_receivers, "BATCH_BYTES", 512)  # several, of several gradients
    yield


def test_this_file_tests_batches() -> None:
    optimizer = zo.SGD(make_layers(), lr=0.5)
    assert isinstance(optimizer._delivery._receiver, _receivers.InBatches)


def test_a_refused_step_is_told_later_and_leaves_no_gradient() -> None:
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0)
    before = [p.detach().clone() for p in model.parameters()]
    plain(model, torch.ones(2, 6)).backward()
    optimizer.param_groups[0]["lr"] = float("nan")
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 1.0
    with pytest.raises(ZeroOptError, match="'group0.lr'.* nan"):
        plain(model, torch.ones(2, 6)).backward()
    assert optimizer.grad_norm is None
    assert all(p.grad is None for p in model.parameters())
    reference = make_layers()
    with torch.no_grad():
        for p, q in zip(reference.parameters(), before, strict=True):
            p.copy_(q)
    for each in (model, reference):
        plain(each, torch.ones(2, 6)).backward()
    optimizer.step()
    for p, q in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(p.detach(), q.detach() - q.grad)


def test_a_batch_that_fails_is_not_lost() -> None:
    model = make_layers()
    optimizer = zo.SGD(model, lr=1.0)
    take = optimizer._step.gradients
    calls = []

    def fail_first(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            raise ZeroOptError("another thread is in a call")
        take(*arguments)

    optimizer._step.gradients = fail_first  # type: ignore[method-assign]
    with pytest.raises(ZeroOptError, match="another thread"):
        plain(model, torch.ones(2, 6)).backward()
    assert all(p.grad is None for p in model.parameters())
    optimizer.step()
    assert optimizer.grad_norm and optimizer.grad_norm > 0


def test_the_model_has_its_own_values() -> None:
    """Whatever master weights are loaded behind them."""
    model = make_model("mlp", torch.bfloat16)
    optimizer = zo.SGD(model, lr=0.0)
    state = optimizer.state_dict()
    with torch.no_grad():
        model.last.weight.fill_(3.0)
    optimizer.load_state_dict(state)
    model.compute_loss(torch.Generator()).backward()
    optimizer.step()
    assert torch.equal(model.last.weight, torch.full_like(model.last.weight, 3.0))
