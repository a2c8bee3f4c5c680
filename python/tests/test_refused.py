# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each use that would train wrongly is refused in one sentence with a remedy."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed.fsdp
from ranks import Workers
from torch import nn

import zero_opt.torch as zo
from zero_opt import ZeroOptError


def make(dtype: torch.dtype = torch.float32) -> nn.Linear:
    return nn.Linear(3, 2).to(dtype)


def step_once(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()


def refuse(message: str, params: Any, **arguments: Any) -> None:
    with pytest.raises(ZeroOptError) as raised:
        zo.AdamW(params, **arguments)
    assert str(raised.value) == message


def test_clipping_by_torch() -> None:
    model, other = make(), make()
    optimizer = zo.SGD(model, lr=0.1)
    model(torch.ones(1, 3)).sum().backward()
    for clip, remedy in (
        (
            torch.nn.utils.clip_grad_norm_,
            "give the optimizer max_norm, and delete this call",
        ),
        (
            torch.nn.utils.clip_grad_value_,
            "delete this call: the optimizer clips by max_norm",
        ),
    ):
        with pytest.raises(ZeroOptError) as raised:
            clip(model.parameters(), 1.0)
        assert str(raised.value).startswith(
            f"{clip.__name__} has parameter 'weight', whose gradients a zero_opt optimizer "
            f"has taken, so nothing would be clipped; {remedy}"
        )
    optimizer.step()
    # Of others it clips as before, also of a tensor, and of those of a closed optimizer.
    other(torch.full((1, 3), 100.0)).sum().backward()
    assert torch.nn.utils.clip_grad_norm_(other.parameters(), 1.0) > 100
    torch.nn.utils.clip_grad_value_(other.weight, 1e-3)
    assert other.weight.grad is not None and other.weight.grad.max() <= 1e-3
    optimizer.close()
    assert torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) == 0


def test_options_of_a_step() -> None:
    """Values that users write between steps are checked before the step."""
    model = make()
    optimizer = zo.AdamW(model, lr=0.1, max_norm=1.0)
    step_once(model, optimizer)
    group = optimizer.param_groups[0]
    for option, value, message in (
        (
            "betas",
            (0.9, 1.0),
            "betas must be two numbers from 0 to less than 1, got (0.9, 1.0)",
        ),
        ("betas", (0.9,), "betas must be two numbers from 0 to less than 1, got (0.9,)"),
        ("lr", "0.1x", "lr must be a number, got '0.1x'"),
        ("lr", None, "lr must be a number, got None"),
        ("weight_decay", [1], "weight_decay must be a number, got [1]"),
        ("eps", ..., "there is no eps; it was there at creation, and the step reads it"),
    ):
        kept = dict(group)
        if value is ...:
            del group[option]
        else:
            group[option] = value
        with pytest.raises(ZeroOptError) as raised:
            step_once(model, optimizer)
        assert str(raised.value) == "in parameter group 0, " + message
        group.update(kept)
        optimizer.zero_grad()
    with pytest.raises(ZeroOptError, match="max_norm must be a positive number, got 'x'"):
        optimizer.max_norm = "x"  # type: ignore[assignment]
    with pytest.raises(
        ZeroOptError, match="number must be a whole number from 0 on, such "
    ):
        optimizer.save_checkpoint("folder", "three")  # type: ignore[arg-type]
    step_once(model, optimizer)
    refuse("timeout must be a positive number of seconds, got 'x'", make(), timeout="x")
    with pytest.warns(
        UserWarning, match="'weightdecay' is no option of adamw; write 'weight_"
    ):
        zo.AdamW([{"params": make().parameters(), "weightdecay": 0.1}])


def test_arguments() -> None:
    refuse("zero is a stage, 0, 1, 2 or 3, got 4", make(), zero=4)
    refuse(
        "max_norm must be a positive number, got 0; leave it out for no clipping: "
        "grad_norm is there in any case",
        make(),
        max_norm=0,
    )
    for scale in ("torch", 0, -1.0, float("inf"), float("nan")):
        refuse(
            f"loss_scale must be 'dynamic' or a positive number, got {scale!r}; leave it "
            "out where losses are not scaled",
            make(),
            loss_scale=scale,
        )
    refuse("the optimizer got an empty list of parameters", [])
    refuse("parameter 0 is a int, expected a tensor or a name and a tensor", [1])
    refuse(
        "parameter group 0 has 'amsgrad', which AdamW does not support; leave it out",
        [{"params": make().parameters(), "amsgrad": True}],
    )
    refuse(
        "no parameter requires a gradient, so nothing is trained; call requires_grad_() "
        "before the optimizer is created",
        make().requires_grad_(False),
    )
    two = [("w", nn.Parameter(torch.ones(1))), ("w", nn.Parameter(torch.ones(1)))]
    refuse("two parameters have the name 'w'; give each a name of its own", two)
    w, _ = make().parameters()
    message = "the optimizer got one parameter twice, as '{}' and as '{}'; list it once"
    refuse(message.format("param.0", "param.1"), [w, w])
    groups = [{"params": [("w", w)]}, {"params": [w]}]
    refuse(message.format("w", "group1.0"), groups)
    tied = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3, bias=False))
    tied[1].weight = tied[0].weight
    named = tied.named_parameters(remove_duplicate=False)
    refuse(message.format("0.weight", "1.weight"), named)
    refuse(
        "AdamW has no argument 'amsgrad'; leave it out, or use the optimizer of torch",
        make(),
        amsgrad=True,
    )


def test_parameters() -> None:
    refuse(
        "parameter 'weight' has dtype torch.float64; convert it to bfloat16 or float32",
        make(torch.float64),
    )
    refuse(
        "parameter 'weight' has dtype torch.float16, in which small gradients vanish; give "
        "the optimizer loss_scale='dynamic', or convert the parameter to bfloat16",
        make(torch.float16),
    )
    model = make()
    refuse(
        "parameter 'param.0' is no leaf of the graph; pass the parameter that it was "
        "computed from",
        [model.weight * 2],
    )
    refuse(
        "parameter 'w' is on the meta device; give the optimizer the values of the "
        "model, such as weights='model.safetensors', or give the model memory with "
        "to_empty(device=...)",
        [("w", nn.Parameter(torch.ones(1, device="meta")))],
    )


def test_sparse_gradients() -> None:
    model = nn.Embedding(4, 2, sparse=True)
    optimizer = zo.SGD(model)
    message = (
        "the gradient of parameter 'weight' is sparse; make the module with sparse=False"
    )
    with pytest.raises(ZeroOptError, match=message):
        model(torch.tensor([1])).sum().backward()
    del optimizer


def test_a_second_optimizer() -> None:
    model = make()
    first = zo.SGD(model)
    message = (
        "parameter 'weight' belongs to another zero_opt optimizer; close() that one first, "
        "or pass all parameters to one optimizer as parameter groups"
    )
    refuse(message, model)
    step_once(model, first)
    first.close()
    step_once(model, zo.SGD(model))


def test_an_optimizer_of_torch_beside() -> None:
    model = nn.Sequential(make(), nn.Linear(2, 2))
    optimizer = zo.SGD(model[0])
    other = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(ZeroOptError) as raised:
        other.step()
    assert str(raised.value) == (
        "AdamW.step() has parameter 'weight', whose gradients a zero_opt optimizer takes; "
        "leave it out of AdamW, or close() the zero_opt optimizer first"
    )
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    torch.optim.AdamW(model[1].parameters()).step()  # of other parameters
    optimizer.step()
    # The same of parameters that the model has instead, and the step not yet.
    model.load_state_dict(copy.deepcopy(model.state_dict()), assign=True)
    with pytest.raises(ZeroOptError, match=r"SGD.step\(\) has parameter 'weight'"):
        torch.optim.SGD(model.parameters()).step()
    optimizer.close()
    other.step()


def test_grad_scaler() -> None:
    model = make()
    optimizer = zo.SGD(model)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.ones(1, 3)).sum()).backward()
    message = (
        "GradScaler scales gradients in .grad, and this optimizer takes gradients before; "
        "give the optimizer loss_scale='dynamic', and call "
        r"optimizer.scale\(loss\).backward\(\) and optimizer.step\(\) without a GradScaler"
    )
    with pytest.raises(ZeroOptError, match=message):
        scaler.step(optimizer)
    optimizer.zero_grad()
    disabled = torch.amp.GradScaler("cpu", enabled=False)
    disabled.scale(model(torch.ones(1, 3)).sum()).backward()
    disabled.step(optimizer)
    assert not optimizer.step_was_skipped


def test_step_without_a_backward_pass() -> None:
    model = make()
    optimizer = zo.AdamW(model, weight_decay=0.5)
    before = copy.deepcopy(model.state_dict())
    with pytest.warns(UserWarning, match="without a backward pass: no parameter") as caught:
        optimizer.step()
    assert caught[0].filename == __file__
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name])
    step_once(model, optimizer)


def test_a_second_backward_pass_of_a_step_of_one() -> None:
    model = make()
    optimizer = zo.AdamW(model, one_backward=True)
    step_once(model, optimizer)
    model(torch.ones(1, 3)).sum().backward()
    with pytest.raises(ZeroOptError, match="a second backward pass since the last step"):
        model(torch.ones(1, 3)).sum().backward()
    optimizer.zero_grad()
    step_once(model, optimizer)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"accumulate": "aside"},
            "accumulate is 'in-place' or 'apart', got 'aside'; 'apart' keeps gradients as "
            "they arrive until a second backward pass comes",
        ),
        (
            {"accumulate": "apart", "zero": 2},
            "accumulate='apart' is an argument of ZeRO stage 1, and of stage 3 with "
            "reduce='apply', and zero is 2; leave it out",
        ),
        (
            {"accumulate": "apart", "one_backward": True},
            "accumulate='apart' is for steps of several backward passes, and one_backward "
            "is True; leave one of the two out",
        ),
        (
            {"accumulate": "apart"},
            "accumulate='apart' keeps gradients of torch.bfloat16 or torch.float16, and "
            "parameter 'weight' has dtype torch.float32, in which gradients are summed; "
            "leave accumulate out, or convert the model",
        ),
    ],
)
def test_accumulate_apart(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ZeroOptError) as caught:
        zo.AdamW(make(), **arguments)
    assert str(caught.value) == message


def test_groups_are_fixed() -> None:
    optimizer = zo.SGD(make())
    with pytest.raises(
        ZeroOptError, match="a compiled step has the parameters that it was"
    ):
        optimizer.add_param_group({"params": make().parameters()})


def append(groups: Any) -> None:
    groups[0]["params"].append(nn.Parameter(torch.ones(1)))


def replace(groups: Any) -> None:
    groups[0]["params"][0] = groups[1]["params"][0]


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda groups: groups.reverse(),
            "parameter group 0 has parameter 'group1.0' in place 0, and had parameter "
            "'group0.0' when the optimizer was created; put param_groups back and freeze",
        ),
        (
            lambda groups: groups[0]["params"].pop(0),
            "parameter group 0 has no parameter in place 0, and had parameter 'group0.0'",
        ),
        (
            append,
            "parameter group 0 has a parameter that is not of the optimizer in place 1, "
            "and had no parameter when",
        ),
        (replace, "parameter group 0 has parameter 'group1.0' in place 0, and had param"),
        (
            lambda groups: groups.pop(),
            "the optimizer has 1 parameter groups, and had 2 when it was created; create",
        ),
    ],
)
def test_changed_groups(change: Callable[[Any], Any], message: str) -> None:
    model = make()
    optimizer = zo.SGD([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.5}])
    step_once(model, optimizer)
    groups = [{**group, "params": [*group["params"]]} for group in optimizer.param_groups]
    change(optimizer.param_groups)
    with pytest.raises(ZeroOptError, match=re.escape(message)):
        step_once(model, optimizer)
    optimizer.param_groups = groups
    optimizer.step()


def test_copies() -> None:
    optimizer = zo.SGD(make())
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(
            ZeroOptError, match="cannot be copied or pickled; save its state_"
        ):
            copied(optimizer)


def test_max_norm_stays_a_number() -> None:
    optimizer = zo.SGD(make(), max_norm=1.0)
    with pytest.raises(ZeroOptError, match="max_norm is 1.0 and cannot become None"):
        optimizer.max_norm = None
    optimizer.max_norm = 0.5


def test_wrong_hyperparameters_at_step() -> None:
    model = make()
    optimizer = zo.SGD(model)
    optimizer.param_groups[0]["lr"] = float("nan")
    with pytest.raises(ZeroOptError, match="'group0.lr'.* nan"):
        step_once(model, optimizer)
    optimizer.param_groups[0]["lr"] = 0.1
    step_once(model, optimizer)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"lr": -1.0}, "lr must be a number of at least 0, got -1.0"),
        ({"lr": "1e-3"}, "lr must be a number of at least 0, got '1e-3'"),
        ({"betas": (0.9, 1.0)}, "betas must be two numbers from 0 to less than 1"),
        ({"betas": (0.9,)}, "betas must be two numbers from 0 to less than 1"),
        ({"stage": 2}, "AdamW has no argument 'stage'; leave it out"),
        ({"amsgrad": True}, "AdamW has no argument 'amsgrad'; leave it out, or use the"),
        ({"max_norm": "1.0"}, "max_norm must be a positive number, got '1.0'"),
        ({"max_norm": float("inf")}, "max_norm must be a positive number, got inf"),
        ({"zero": True}, "zero is a stage, 0, 1, 2 or 3, got True"),
        (
            {"offload": "cpu"},
            "offload is True, False or 'parameters', got 'cpu'; True keeps the optimizer's "
            "state in the memory of the host",
        ),
        (
            {"offload": "parameters", "zero": 2},
            "offload='parameters' keeps slices of units on the host, and zero is 2; give "
            "zero=3, or offload=True",
        ),
        ({"loss_scale": True}, "loss_scale must be 'dynamic' or a positive number"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ZeroOptError) as raised:
        zo.AdamW(make(), **arguments)
    assert message in str(raised.value)


def test_arguments_that_change_nothing() -> None:
    model = make()
    optimizer = zo.AdamW(model, fused=True, foreach=False, amsgrad=False, maximize=False)
    step_once(model, optimizer)


def test_max_norm_of_a_group() -> None:
    with pytest.raises(ZeroOptError, match="clipping is by the norm of all gradients"):
        zo.AdamW([{"params": list(make().parameters()), "max_norm": 1.0}])


@pytest.mark.parametrize(
    "refuses",
    [
        test_arguments,
        test_parameters,
        test_sparse_gradients,
        test_a_second_optimizer,
        test_an_optimizer_of_torch_beside,
        test_grad_scaler,
        test_step_without_a_backward_pass,
        test_a_second_backward_pass_of_a_step_of_one,
        test_groups_are_fixed,
        test_copies,
        test_max_norm_stays_a_number,
        test_wrong_hyperparameters_at_step,
        test_arguments_that_change_nothing,
        test_max_norm_of_a_group,
    ],
)
def test_on_two_ranks(workers: Workers, refuses: Callable[[], None]) -> None:
    """Each rank refuses what one rank alone does, and none waits for the other."""
    workers.run(refuses)
