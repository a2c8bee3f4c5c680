# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.optim.AdamW and clip_grad_norm_ in f64, with a bound of what rounding explains.

The bound of each element follows the formula of AdamW: each operation in f32 adds half a
unit in the last place of its result, and passes on the errors of its operands.
"""

from __future__ import annotations

import torch
from training import OTHERS, Recorded

HALF_ULP = 2.0**-24  # of f32, relative


class Reference:
    """All trained parameters in f64; `bound` is for the difference from them."""

    def __init__(self, initial: dict[str, torch.Tensor], names: set[str]) -> None:
        self.values = {
            name: torch.nn.Parameter(tensor.double())
            for name, tensor in initial.items()
            if name in names
        }
        self._settings = {
            name: {"weight_decay": 0.1, "lr": 3e-3, "betas": (0.9, 0.999), "eps": 1e-8}
            if tensor.ndim > 1
            else {"weight_decay": 0.0, **OTHERS}
            for name, tensor in self.values.items()
        }
        self._optimizer = torch.optim.AdamW(
            [{"params": [p], **self._settings[name]} for name, p in self.values.items()]
        )
        zeros = {name: torch.zeros_like(p.data) for name, p in self.values.items()}
        self.bound = dict(zeros)
        self._bound_m = dict(zeros)
        self._bound_v = dict(zeros)

    def step(
        self,
        gradients: list[list[dict[str, torch.Tensor]]],
        rates: list[float],
        max_norm: float | None,
    ) -> float:
        """One step of the gradients of [rank][backward pass]; returns the norm."""
        bounds: dict[str, torch.Tensor] = {}
        ranks = len(gradients)
        for name, parameter in self.values.items():
            addends = [
                backward[name].double()
                for rank in gradients
                for backward in rank
                if name in backward
            ]
            parameter.grad = sum(addends) / ranks if addends else None
            if addends:
                size = sum(addend.abs() for addend in addends) / ranks
                bounds[name] = (len(addends) + 1) * HALF_ULP * size
        present = [p for p in self.values.values() if p.grad is not None]
        norm = torch.nn.utils.clip_grad_norm_(present, max_norm or float("inf")).item()
        factor = 1.0 if max_norm is None else min(1.0, max_norm / (norm + 1e-6))
        # The error of the norm is at most the norm of the errors.
        norm_error = sum(b.square().sum().item() for b in bounds.values()) ** 0.5
        factor_error = norm_error / norm + 2 * HALF_ULP
        for name, bound in bounds.items():
            gradient = self.values[name].grad
            bounds[name] = factor * bound + (factor_error + 2 * HALF_ULP) * gradient.abs()
        for group in self._optimizer.param_groups:
            group["lr"] = rates[0 if group["params"][0].ndim > 1 else 1]
        self._optimizer.step()
        for name, bound in bounds.items():
            self._advance_bound(name, bound)
        return norm

    def _advance_bound(self, name: str, bound_g: torch.Tensor) -> None:
        parameter = self.values[name]
        state = self._optimizer.state[parameter]
        group = next(g for g in self._optimizer.param_groups if g["params"][0] is parameter)
        beta1, beta2 = group["betas"]
        g, m, v = parameter.grad.abs(), state["exp_avg"].abs(), state["exp_avg_sq"]
        count = state["step"].item()
        old_m = (m + (1 - beta1) * g) / beta1
        bound_m = beta1 * self._bound_m[name] + (1 - beta1) * bound_g
        bound_m += 2 * HALF_ULP * (beta1 * old_m + (1 - beta1) * g) + HALF_ULP * m
        bound_square = 2 * g * bound_g + bound_g**2 + HALF_ULP * g**2
        bound_v = beta2 * self._bound_v[name] + (1 - beta2) * bound_square
        bound_v += 4 * HALF_ULP * v
        root = v.sqrt()
        # |sqrt(a) - sqrt(b)| is at most |a - b| / sqrt(a), and at most sqrt(|a - b|).
        bound_root = torch.minimum(bound_v / root.clamp_min(1e-300), bound_v.sqrt())
        scale = 1 / (1 - beta2**count) ** 0.5
        divisor = root * scale + group["eps"]
        bound_divisor = scale * bound_root + 3 * HALF_ULP * divisor
        least = torch.clamp_min(divisor - bound_divisor, group["eps"] / 2)
        quotient = m / divisor
        bound_q = (bound_m + quotient * bound_divisor) / least + 2 * HALF_ULP * quotient
        rate = group["lr"] / (1 - beta1**count)
        bound = self.bound[name] + rate * bound_q
        bound += HALF_ULP * (3 * parameter.data.abs() + 4 * rate * quotient)
        self._bound_m[name], self._bound_v[name], self.bound[name] = bound_m, bound_v, bound


def assemble(
    pieces: list[list[tuple[int, torch.Tensor]]], shape: torch.Size
) -> torch.Tensor:
    """A whole tensor from the pieces of all ranks."""
    found = sorted(
        {begin: tensor for rank in pieces for begin, tensor in rank}.items(),
        key=lambda piece: piece[0],
    )
    whole = torch.cat([tensor for _, tensor in found]) if found else torch.empty(0)
    assert whole.numel() == shape.numel()
    return whole.view(shape)


def check(records: list[Recorded], max_norm: float | None) -> float:
    """Compares all ranks with the reference; returns the largest part of the bound that a
    difference takes."""
    first = records[0]
    names = {name for rank in records for p in rank.gradients for b in p for name in b}
    reference = Reference(first.initial, names)
    largest = 0.0
    for step, parameters in enumerate(first.parameters):
        norm = reference.step(
            [record.gradients[step] for record in records], first.rates[step], max_norm
        )
        assert abs(first.norms[step] - norm) <= 1e-6 * norm
        for name, value in parameters.items():
            for record in records[1:]:
                assert torch.equal(value, record.parameters[step][name]), (step, name)
            if name not in names:
                assert torch.equal(value, first.initial[name]), (step, name)
                continue
            master = value
            if value.dtype is torch.bfloat16:
                pieces = [record.master_weights[step].get(name, []) for record in records]
                master = assemble(pieces, value.shape)
                assert torch.equal(master.bfloat16(), value), (step, name)
            difference = (master.double() - reference.values[name].data).abs()
            bound = reference.bound[name]
            assert (difference <= bound).all(), (step, name, (difference - bound).max())
            used = (difference / bound.clamp_min(1e-300)).max().item()
            largest = max(largest, used)
    return largest
