# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that share memory with a parameter are refused, and no others."""

from __future__ import annotations

import time

import torch
from ranks import Workers
from test_refused import make, refuse, step_once
from torch import nn
from training import get_rank

import zero_opt.torch as zo
from zero_opt.torch._storages import check_storages


def train(model: nn.Module) -> None:
    step_once(model, zo.AdamW(model))


def test_parameters_that_share_memory() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight.data = model[0].weight.data
    message = (
        "parameters '0.weight' and '1.weight' share memory, and the optimizer gives each "
        "memory of its own; tie them with module.weight = other.weight, so that there is "
        "one parameter"
    )
    refuse(message, model)
    model[1].weight.requires_grad_(False)
    refuse(message, model)
    model[1].weight = model[0].weight
    train(model)
    whole = torch.ones(4, 4)
    some = [("a", nn.Parameter(whole[:, :3])), ("b", nn.Parameter(whole[1:2]))]
    refuse(message.replace("0.weight", "a").replace("1.weight", "b"), some)


def test_buffers_that_share_memory() -> None:
    model = nn.Sequential(make(), nn.Linear(2, 2))
    model.register_buffer("first", model[0].weight.detach()[:, :1])
    message = (
        "buffer 'first' shares memory with parameter '0.weight', which the optimizer gives "
        "memory of its own; register a clone() of it"
    )
    refuse(message, model)
    refuse(message, [("0.weight", model[0].weight)], model=model)
    zo.AdamW(model[1].parameters(), model=model).close()
    model.first = model.first.clone()
    train(model)


def test_parameters_that_share_no_memory() -> None:
    """But have neighbouring memory, none, or that of one element."""
    flat = torch.ones(12)
    whole = torch.ones(4, 4)
    parameters = [
        flat[:5],
        flat[5:],
        whole[:, :2],
        whole[:, 2:],
        torch.ones(0),
        flat[:0],
        torch.ones(1).expand(5),
    ]
    model = nn.ParameterList(nn.Parameter(p) for p in parameters)
    model.register_buffer("one", torch.ones(3))
    model.register_buffer("other", model.one[:2])
    optimizer = zo.AdamW(model)
    sum(p.sum() for p in model).backward()
    optimizer.step()


def test_an_expanded_parameter_on_two_ranks(workers: Workers) -> None:
    for parameter in workers.run(train_expanded):
        assert torch.equal(parameter, torch.full((3, 2), 0.5))


def train_expanded() -> torch.Tensor:
    parameter = nn.Parameter(torch.full((1, 2), 1.0 + get_rank()).expand(3, 2))
    optimizer = zo.SGD([("w", parameter)], lr=0.5)
    parameter.sum().backward()
    optimizer.step()
    return parameter.detach().clone()


def test_a_parameter_of_inference_mode() -> None:
    with torch.inference_mode():
        model = make()
    refuse(
        "parameter 'weight' was made in torch.inference_mode(), and torch counts no writes "
        "to it; make the model outside of it",
        model,
    )


def test_many_parameters_are_compared_quickly() -> None:
    flat = torch.ones(20000)
    named = [(str(n), nn.Parameter(flat[2 * n : 2 * n + 2])) for n in range(10000)]
    begin = time.perf_counter()
    check_storages(named, [], None)
    assert time.perf_counter() - begin < 5
