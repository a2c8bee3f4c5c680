# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ZeRO stage 3 refuses, and what the user reads."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from ranks import Workers
from test_stage3_hooks import Layer, Stack, compute_loss
from torch import nn
from torch.utils.checkpoint import checkpoint
from training import get_rank

import zero_opt.torch as zo
from zero_opt import ZeroOptError


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"zero": 3},
            "stage 3 shards the parameters of units, and there is none; list the classes "
            "of the model's layers, such as zo.AdamW(model, zero=3, "
            "units=[TransformerBlock])",
        ),
        (
            {"zero": 2, "whole_below": 100},
            "whole_below is an argument of ZeRO stage 3, and zero is 2; leave it out, or "
            "give zero=3",
        ),
        (
            {"zero": 3, "units": [Layer], "whole_below": -1},
            "whole_below is a number of elements, got -1; parameters that have fewer stay "
            "whole on each rank",
        ),
        (
            {"zero": 3, "units": [Layer], "whole_below": 10**6},
            "no unit has a parameter of its own of 1000000 elements and more, so stage 3 "
            "has nothing to shard; list the classes of layers that have some, or give "
            "zero=2",
        ),
        (
            {"zero": 2, "keep_after_forward": "last"},
            "keep_after_forward is an argument of ZeRO stage 3, and zero is 2; leave it "
            "out, or give zero=3",
        ),
        (
            {"zero": 3, "units": [Layer], "keep_after_forward": "first"},
            "keep_after_forward is True, False or 'last', got 'first'; True keeps each "
            "unit gathered from its forward to its backward pass",
        ),
        (
            {"zero": 1, "unit_order": "declared"},
            "unit_order is an argument of ZeRO stage 3, and zero is 1; leave it out, or "
            "give zero=3",
        ),
        (
            {"zero": 3, "units": [Layer], "unit_order": "forward"},
            "unit_order is 'calls' or 'declared', got 'forward'; 'declared' says that the "
            "model uses its units in the order of model.modules()",
        ),
        (
            {"zero": 3, "units": [Layer], "unit_order": "declared", "prefetch_units": -1},
            "prefetch_units is a whole number of units, got -1; 1 gathers the next unit "
            "while one is used",
        ),
        (
            {"zero": 3, "units": [Layer], "prefetch_units": 2},
            "prefetch_units is 2, and unit_order is 'calls'; only in a declared order the "
            "units that follow are known, so give unit_order='declared'",
        ),
        (
            {"zero": 3, "units": [Layer], "gather_dtype": torch.int8},
            "gather_dtype is None or one of torch.float16, torch.bfloat16, torch.float32, "
            "got torch.int8; None gathers parameters as they are",
        ),
        (
            {"zero": 2, "gather_dtype": torch.bfloat16},
            "gather_dtype is an argument of ZeRO stage 3, and zero is 2; leave it out, or "
            "give zero=3",
        ),
        (
            {"zero": 2, "reduce": "apply"},
            "reduce is an argument of ZeRO stage 3, and zero is 2; leave it out, or give "
            "zero=3",
        ),
        (
            {"zero": 3, "units": [Layer], "reduce": "step"},
            "reduce is 'backward' or 'apply', got 'step'; 'apply' sums gradients over the "
            "ranks once a step, and each rank keeps whole gradients",
        ),
        ({"zero": 3, "units": []}, "stage 3 shards the parameters of units, and there is"),
        (
            {"zero": 2, "units": [Layer]},
            "units is an argument of ZeRO stage 3, and zero is 2; leave it out, or give "
            "zero=3",
        ),
        (
            {"zero": 3, "units": [nn.Conv2d]},
            "units has the class Conv2d, and the model has no such module; list the "
            "classes of the model's layers",
        ),
        (
            {"zero": 3, "units": [nn.Linear(2, 2)]},
            "units has a module of class Linear, and the model has no such module; list "
            "the classes of the model's layers",
        ),
        (
            {"zero": 3, "units": ["Layer"]},
            "units lists classes of modules, or modules, got 'Layer'; such as "
            "zo.AdamW(model, zero=3, units=[TransformerBlock])",
        ),
        (
            {"zero": 3, "units": [nn.ModuleList, nn.Identity]},
            "units has the class Identity, and the model has no such module; list the "
            "classes of the model's layers",
        ),
    ],
)
def test_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ZeroOptError) as raised:
        zo.AdamW(Stack(), **arguments)
    assert str(raised.value).startswith(message)


def test_a_list_of_parameters_needs_the_model() -> None:
    with pytest.raises(ZeroOptError) as raised:
        zo.AdamW(Stack().parameters(), zero=3, units=[Layer])
    assert str(raised.value) == (
        "units are modules of the model, and the optimizer got parameters; give the "
        "optimizer the model, too: zo.AdamW(params, model=model, zero=3, units=[...])"
    )


def test_units_without_parameters() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Linear(6, 6))
    with pytest.raises(ZeroOptError) as raised:
        zo.AdamW(model, zero=3, units=[nn.ReLU])
    assert str(raised.value) == (
        "no unit has a parameter of its own, so stage 3 has nothing to shard; list the "
        "classes of layers that have some, or give zero=2"
    )


def save(model: Stack, optimizer: zo.SGD) -> None:
    model.state_dict()


def load(model: Stack, optimizer: zo.SGD) -> None:
    model.load_state_dict(Stack().state_dict())


def convert(model: Stack, optimizer: zo.SGD) -> None:
    model.to(torch.bfloat16)
    compute_loss(model, 0, False)


def replace(model: Stack, optimizer: zo.SGD) -> None:
    model.layers[1].weight = nn.Parameter(torch.zeros(6, 6))
    optimizer.save_checkpoint("nowhere")


def write(model: Stack, optimizer: zo.SGD) -> None:
    with torch.no_grad():
        model.layers[1].weight.copy_(torch.ones(6, 6))


def fill(model: Stack, optimizer: zo.SGD) -> None:
    with torch.no_grad():
        model.layers[1].weight.fill_(1)
    compute_loss(model, 0, False).backward()


def fill_and_tell(model: Stack, optimizer: zo.SGD) -> None:
    with torch.no_grad():
        model.layers[1].weight.fill_(float("nan"))
    optimizer.parameters_changed()
    compute_loss(model, 0, False).backward()


def fill_data(model: Stack, optimizer: zo.SGD) -> None:
    model.layers[1].weight.data.fill_(1)
    optimizer.save_checkpoint("nowhere")


def fill_frozen(model: Stack, optimizer: zo.SGD) -> None:
    model.layers[3].bias.fill_(1)
    compute_loss(model, 0, False).backward()


def train_frozen(model: Stack, optimizer: zo.SGD) -> None:
    model.layers[3].bias.requires_grad_()
    compute_loss(model, 0, False).backward()


def write_within(model: Stack, optimizer: zo.SGD) -> None:
    def clamp(layer: nn.Module, *_: Any) -> None:
        with torch.no_grad():
            layer.weight.clamp_(-1, 1)

    model.layers[1].register_forward_pre_hook(clamp)
    compute_loss(model, 0, False).backward()


def use_elsewhere(model: Stack, optimizer: zo.SGD) -> None:
    model.layers[1].weight.square().sum().backward()


def penalize_gradients(model: Stack, optimizer: zo.SGD) -> None:
    x = torch.randn(4, 6, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    gradient.square().mean().backward()


def return_a_view(model: Stack, optimizer: zo.SGD) -> None:
    model.layers[0].forward = lambda x: model.layers[0].weight.t()
    model.layers[0](torch.randn(4, 6))


def checkpoint_three(model: Stack, optimizer: zo.SGD) -> None:
    x = torch.randn(4, 6, requires_grad=True)
    three = nn.Sequential(*model.layers[:3])
    checkpoint(three, x, use_reentrant=False).sum().backward()


def consolidate_within_a_step(model: Stack, optimizer: zo.SGD) -> None:
    compute_loss(model, 0, False).backward()
    optimizer.consolidate_model()


def differentiate_forward(model: Stack, optimizer: zo.SGD) -> None:
    x = torch.randn(4, 6)
    torch.func.jvp(model, (x,), (x,))


def attempt(action: Callable[[Stack, zo.SGD], None]) -> str:
    torch.manual_seed(3)
    model = Stack()
    model.layers[3].bias.requires_grad_(False)
    optimizer = zo.SGD(model, lr=0.1, zero=3, units=[Layer])
    try:
        action(model, optimizer)
    except (ZeroOptError, RuntimeError) as error:
        return str(error)
    finally:
        optimizer.close()
    return "nothing was raised"


MODULE = "() of module 'layers.0', of which a rank has slices only; call optimizer.conso"
STALE = "one of the variables needed for gradient computation has been modified by an "
SLICE = "and each rank has a slice of it only; change parameters of units before the "


@pytest.mark.parametrize(
    "action, message",
    [
        (save, f"state_dict{MODULE}"),
        (load, f"load_state_dict{MODULE}"),
        (
            convert,
            f"parameter 'layers.0.weight' of unit 'layers.0' was moved or written, {SLICE}",
        ),
        (replace, f"parameter 'layers.1.weight' of a unit was replaced, {SLICE}"),
        (write, "unsupported operation: more than one element of the written-to tensor"),
        (fill, f"parameter 'layers.1.weight' of a unit was written, {SLICE}"),
        (fill_and_tell, f"parameter 'layers.1.weight' of a unit was written, {SLICE}"),
        (fill_data, f"parameter 'layers.1.weight' of a unit was written, {SLICE}"),
        (fill_frozen, f"parameter 'layers.3.bias' of a unit was written, {SLICE}"),
        (train_frozen, "parameter 'layers.3.bias' required no gradient when the optimi"),
        (write_within, f"parameter 'layers.1.weight' of a unit was written, {SLICE}"),
        (use_elsewhere, "the gradient of parameter 'layers.1.weight' arrives while its "),
        (penalize_gradients, STALE),
        (return_a_view, "unit 'layers.0' returns a parameter or a view of one, whose mem"),
        (checkpoint_three, "unit 'layers.0' is needed besides 'layers.2', and there is m"),
        (differentiate_forward, "unit 'layers.0' is called in forward-mode differentiatio"),
        (consolidate_within_a_step, "consolidate_model() came between a backward pass "),
    ],
)
def test_refused(
    workers: Workers, action: Callable[[Stack, zo.SGD], None], message: str
) -> None:
    for found in workers.run(attempt, action):
        assert found.startswith(message)


def close_and_go_on() -> list[str]:
    """What a model is good for when its optimizer is closed."""
    model = Stack()
    model.layers[1].requires_grad_(False)
    optimizer = zo.SGD(model, lr=0.1, zero=3, units=[Layer])
    found: list[str] = []

    def attempt_to(action: Callable[[], Any]) -> None:
        try:
            action()
        except ZeroOptError as error:
            found.append(str(error))

    attempt_to(lambda: zo.SGD(model, lr=0.1))
    state = [optimizer.consolidate_model()]
    optimizer.close()
    torch.distributed.broadcast_object_list(state)
    attempt_to(lambda: zo.SGD(model, lr=0.1, zero=3, units=[Layer]))
    attempt_to(model.state_dict)
    model.load_state_dict(state[0], assign=True)
    model = pickle.loads(pickle.dumps(model))
    assert all(torch.equal(p, state[0][name]) for name, p in model.named_parameters())
    zo.SGD(model, lr=0.1, zero=3, units=[Layer]).close()
    return found


def test_a_model_whose_optimizer_is_closed(workers: Workers) -> None:
    owned, closed, saved = workers.run(close_and_go_on)[0]
    assert "; call consolidate_model() and close() of that one first, since" in owned
    assert closed.startswith(
        "parameter 'layers.0.weight' has no values since an optimizer of stage 3 was closed"
    )
    assert saved == (
        "state_dict() of module 'layers.0', of which the closed optimizer has left no "
        "values; call consolidate_model() before close()"
    )


def read_outside() -> tuple[bool, bool, int, torch.Size]:
    model = Stack()
    optimizer = zo.SGD(model, lr=0.1, zero=3, units=[Layer])
    weight = model.layers[1].weight
    loss = compute_loss(model, 0, False) + weight.square().sum()
    loss.backward()
    optimizer.step()
    skipped = optimizer.step_was_skipped
    found = bool(loss.isnan()), skipped, weight.untyped_storage().nbytes(), weight.shape
    optimizer.close()
    return found


def test_a_parameter_that_is_read_outside_is_nan(workers: Workers) -> None:
    assert workers.run(read_outside) == [(True, True, 4, torch.Size([6, 6]))] * 2


def record_addresses() -> list[set[int]]:
    """For each unit, where its weight is in forward and backward passes of three steps."""
    model = Stack()
    optimizer = zo.SGD(model, lr=0.1, zero=3, units=[Layer])
    found: list[set[int]] = [set() for _ in model.layers]

    def record(number: int) -> Callable[..., None]:
        return lambda *_: found[number].add(model.layers[number].weight.data_ptr())

    for number, layer in enumerate(model.layers):
        layer.register_forward_pre_hook(record(number))
        layer.weight.register_hook(record(number))
    for step in range(3):
        compute_loss(model, step, True).backward()
        optimizer.step()
    optimizer.close()
    return found


def test_the_memory_of_a_unit_has_one_address(workers: Workers) -> None:
    """What autograd has saved of a weight in the forward pass is its memory. Two units that
    are no neighbours share it."""
    for found in workers.run(record_addresses):
        assert [len(addresses) for addresses in found] == [1] * 5
        assert found[0] == found[2] == found[4] != found[1] == found[3]


def skip_on_one_rank() -> str:
    torch.manual_seed(3)
    model = Stack(2)
    optimizer = zo.SGD(model, lr=0.1, zero=3, units=[Layer], timeout=5.0)
    if get_rank():
        model.layers[0] = nn.Identity()
    try:
        compute_loss(model, 0, False).backward()
        optimizer.step()
    except ZeroOptError as error:
        return str(error)
    finally:
        optimizer.close()
    return "nothing was raised"


def test_a_rank_that_skips_a_unit_is_an_error(workers: Workers) -> None:
    for message in workers.run(skip_on_one_rank):
        assert message == (
            "rank 0 is in all_gather of 'layers.0.unsharded', rank 1 in all_gather of "
            "'layers.1.unsharded'; all ranks make the same calls in one order: as many "
            "forward and backward passes, and the same calls of the optimizer"
        )


def test_a_copy_has_no_values(workers: Workers) -> None:
    for is_nan, found in workers.run(copy_model):
        assert is_nan
        assert len(found) == 4
        for message in found:
            assert message == (
                "module 'layers.0' is a copy of a sharded one, so it has no values; "
                "make a new model, and load into it what "
                "optimizer.consolidate_model() has returned"
            )


def copy_model() -> tuple[bool, list[str]]:
    model = Stack()
    optimizer = zo.SGD(model, lr=0.1, zero=3, units=[Layer])
    compute_loss(model, 0, False).backward()
    optimizer.step()
    other = copy.deepcopy(model)
    state = optimizer.consolidate_model()
    found: list[str] = []

    def attempt_to(action: Callable[[], Any]) -> None:
        try:
            action()
        except ZeroOptError as error:
            found.append(str(error))

    # On one rank only: the others do not wait.
    attempt_to(lambda: compute_loss(other, 0, False))
    attempt_to(other.state_dict)
    attempt_to(lambda: other.load_state_dict(state or {}))
    compute_loss(model, 0, False).backward()
    optimizer.step()
    optimizer.close()
    attempt_to(lambda: compute_loss(other, 0, False))
    return bool(other.layers[0].weight.isnan().all()), found
