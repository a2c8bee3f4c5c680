# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the arguments of an optimizer to the step that the compiler gets."""

from __future__ import annotations

import dataclasses
import difflib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from zero_opt import compiler
from zero_opt.errors import ZeroOptError
from zero_opt.torch._aliases import check_free
from zero_opt.torch._groups import check_listed_once
from zero_opt.torch._parameters import DTYPES, ListedGroup, Named, check_parameter
from zero_opt.torch._units import KeepAfterForward, Unit

# Options of torch's optimizers that change what a step computes, and that no recipe has.
UNKNOWN = ("amsgrad", "dampening", "decoupled_weight_decay", "maximize", "nesterov")

# Options that choose a way to compute the same step.
HARMLESS = ("capturable", "differentiable", "foreach", "fused")

# Whether state is on the host; "parameters": slices of units, too.
Offload: TypeAlias = bool | str

# The number of its parameter group, or None for a frozen one of a unit; its name; and the
# parameter.
Listed: TypeAlias = tuple[int | None, str, torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """An optimizer of the compiler: how a parameter group says each of its
    hyperparameters, in the compiler's order; what torch calls its state; the optimizer
    of torch with the same state, if there is one; and the optimizer itself, where its
    user has written it (_written.py)."""

    name: str
    hyper: Mapping[str, Callable[[dict[str, Any]], float]]
    state: Mapping[str, str]
    torch_kind: Callable[[list[torch.Tensor]], torch.optim.Optimizer] | None
    ir: str | None = None
    # Hyperparameters that stay 0, or stay other than 0: torch begins state anew where they
    # change.
    switches: tuple[str, ...] = ()

    def check_switches(
        self, groups: Sequence[int], before: Sequence[float], now: Sequence[float]
    ) -> None:
        """|before| and |now| have all hyperparameters of |groups|, for two steps."""
        names = [(number, name) for number in groups for name in self.hyper]
        for (number, name), had, has in zip(names, before, now, strict=False):
            if name in self.switches and (had == 0) != (has == 0):
                raise ZeroOptError(
                    f"in parameter group {number}, {name} is {has} and was {had} in the "
                    "last step: a change between 0 and another number needs other state; "
                    "create a new optimizer"
                )

    def read_inputs(self, number: int, group: dict[str, Any]) -> list[float]:
        """The hyperparameters of parameter group |number| in the next step."""
        where = f"in parameter group {number}, "
        self.check_unread(where, group)
        self.check_added(number, group)
        # With such a beta the parameters would become nan. A rate below 0 is as in torch,
        # and the runtime refuses what is not finite.
        _check_betas(where, group)
        inputs = []
        for name, read in self.hyper.items():
            option = "weight_decay" if name == "wd" and self.ir is None else name
            try:
                inputs.append(float(read(group)))
            except KeyError as error:
                raise ZeroOptError(
                    f"{where}there is no {option}; it was there at creation, and the step "
                    "reads it"
                ) from error
            except (TypeError, ValueError, RuntimeError) as error:
                raise ZeroOptError(
                    f"{where}{option} must be a number, got {read(group)!r}"
                ) from error
        return inputs

    def get_beta(self, counter: str) -> Callable[[dict[str, Any]], float] | None:
        """The hyperparameter whose product over steps |counter| is: "beta1" of "beta1_t".
        None if it is another number."""
        return self.hyper[counter.removesuffix("_t")]

    def check_values(self, where: str, options: Mapping[str, Any]) -> None:
        check_hyperparameters(where, options)

    def list_unknown(self) -> list[str]:
        """Options of torch's optimizers that change what a step computes, and that this
        one does not have."""
        return [*UNKNOWN]

    def check_unread(self, where: str, options: Mapping[str, Any]) -> None:
        """Refuses options of a parameter group that no step would read."""

    def check_added(self, number: int, options: Mapping[str, Any]) -> None:
        """Refuses options that parameter group |number| did not have at creation."""
        for name in self.list_unknown():
            if options.get(name):
                raise ZeroOptError(
                    f"in parameter group {number}, '{name}' is {options[name]}, which no "
                    "step computes; leave it out, or use the optimizer of torch"
                )


LossScale: TypeAlias = "str | float | None"


def check_unknown(optimizer: str, others: Mapping[str, Any]) -> None:
    """Arguments of torch's optimizers that this package does not have may say what it does
    anyway."""
    for name, value in others.items():
        if name in HARMLESS or (name in UNKNOWN and not value):
            continue
        raise ZeroOptError(
            f"{optimizer} has no argument '{name}'; leave it out"
            + (", or use the optimizer of torch" if name in UNKNOWN else "")
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_betas(where: str, options: Mapping[str, Any]) -> None:
    betas = options.get("betas", (0, 0))
    if (
        not isinstance(betas, tuple | list)
        or len(betas) != 2
        or not all(_is_number(beta) and 0 <= beta < 1 for beta in betas)
    ):
        raise ZeroOptError(
            f"{where}betas must be two numbers from 0 to less than 1, got {betas!r}"
        )


def check_hyperparameters(where: str, options: Mapping[str, Any]) -> None:
    """As torch's optimizers check them when they are created."""
    for name in ("lr", "weight_decay", "eps", "momentum"):
        value = options.get(name, 0)
        if isinstance(value, torch.Tensor):
            continue
        if not _is_number(value) or not 0 <= value < float("inf"):
            raise ZeroOptError(
                f"{where}{name} must be a number of at least 0, got {value!r}"
            )
    _check_betas(where, options)


def _check_choice(
    name: str, value: str, choices: tuple[str, str], hint: str, zero: int
) -> None:
    """Checks an argument of stage 3. At other stages it has the first choice."""
    if value not in choices:
        raise ZeroOptError(
            f"{name} is {choices[0]!r} or {choices[1]!r}, got {value!r}; {hint}"
        )
    if value != choices[0] and zero != 3:
        raise ZeroOptError(
            f"{name} is an argument of ZeRO stage 3, and zero is {zero}; leave it out, or "
            "give zero=3"
        )


def _check_gather_dtype(gather_dtype: torch.dtype | None, zero: int) -> None:
    if gather_dtype is None:
        return
    if gather_dtype not in DTYPES:
        known = ", ".join(map(str, DTYPES))
        raise ZeroOptError(
            f"gather_dtype is None or one of {known}, got {gather_dtype!r}; None gathers "
            "parameters as they are"
        )
    if zero != 3:
        raise ZeroOptError(
            f"gather_dtype is an argument of ZeRO stage 3, and zero is {zero}; leave it "
            "out, or give zero=3"
        )


def _check_accumulate(accumulate: str, one_backward: bool, zero: int, reduce: str) -> None:
    if accumulate not in ("in-place", "apart"):
        raise ZeroOptError(
            f"accumulate is 'in-place' or 'apart', got {accumulate!r}; 'apart' keeps "
            "gradients as they arrive until a second backward pass comes"
        )
    if accumulate == "in-place":
        return
    if zero != 1 and (zero, reduce) != (3, "apply"):
        raise ZeroOptError(
            "accumulate='apart' is an argument of ZeRO stage 1, and of stage 3 with "
            f"reduce='apply', and zero is {zero}; leave it out"
        )
    if one_backward:
        raise ZeroOptError(
            "accumulate='apart' is for steps of several backward passes, and one_backward "
            "is True; leave one of the two out"
        )


def check_narrow(named: Iterable[Listed], accumulate: str) -> None:
    for group, name, parameter in named:
        if accumulate == "apart" and group is not None and parameter.dtype.itemsize > 2:
            raise ZeroOptError(
                f"accumulate='apart' keeps gradients of torch.bfloat16 or torch.float16, "
                f"and parameter '{name}' has dtype {parameter.dtype}, in which gradients "
                "are summed; leave accumulate out, or convert the model"
            )


def check_frozen_travel(frozen: Iterable[Named], gather_dtype: torch.dtype | None) -> None:
    """No rank has the values of a frozen parameter that only travels rounded."""
    for name, parameter in frozen:
        if gather_dtype is not None and gather_dtype.itemsize < parameter.dtype.itemsize:
            raise ZeroOptError(
                f"gather_dtype is {gather_dtype}, and frozen parameter '{name}' of a unit "
                f"has dtype {parameter.dtype}: consolidate_model() could not give its "
                f"values back; convert it to {gather_dtype}, or leave out gather_dtype"
            )


def check_max_norm(max_norm: float | None) -> None:
    if max_norm is not None and (
        not isinstance(max_norm, int | float) or not 0 < max_norm < float("inf")
    ):
        raise ZeroOptError(
            f"max_norm must be a positive number, got {max_norm!r}; leave it out for no "
            "clipping: grad_norm is there in any case"
        )


def _warn_of_typos(where: str, recipe: Recipe, options: Mapping[str, Any]) -> None:
    """A parameter group may have options for others, so that one in which a letter is
    wrong is no error."""
    known = {"lr", "weight_decay", "betas", "eps", "momentum", *recipe.hyper}
    for option in options.keys() - known:
        for meant in difflib.get_close_matches(option, known, n=1, cutoff=0.9):
            warnings.warn(
                f"{where}'{option}' is no option of {recipe.name}; write '{meant}', if "
                "that is meant",
                stacklevel=5,
            )


def check_arguments(
    optimizer: str,
    recipe: Recipe,
    groups: list[ListedGroup],
    max_norm: float | None,
    zero: int,
    loss_scale: LossScale,
    offload: Offload,
    keep_after_forward: KeepAfterForward,
    unit_order: str,
    prefetch_units: int,
    reduce: str,
    accumulate: str,
    one_backward: bool,
    gather_dtype: torch.dtype | None,
    timeout: float,
) -> None:
    _check_choice(
        "unit_order",
        unit_order,
        ("calls", "declared"),
        "'declared' says that the model uses its units in the order of model.modules()",
        zero,
    )
    if type(prefetch_units) is not int or prefetch_units < 0:
        raise ZeroOptError(
            f"prefetch_units is a whole number of units, got {prefetch_units!r}; 1 gathers "
            "the next unit while one is used"
        )
    if prefetch_units != 1 and unit_order != "declared":
        raise ZeroOptError(
            f"prefetch_units is {prefetch_units}, and unit_order is {unit_order!r}; only "
            "in a declared order the units that follow are known, so give "
            "unit_order='declared'"
        )
    _check_gather_dtype(gather_dtype, zero)
    _check_choice(
        "reduce",
        reduce,
        ("backward", "apply"),
        "'apply' sums gradients over the ranks once a step, and each rank keeps whole "
        "gradients",
        zero,
    )
    _check_accumulate(accumulate, one_backward, zero, reduce)
    if not isinstance(keep_after_forward, bool) and keep_after_forward != "last":
        raise ZeroOptError(
            f"keep_after_forward is True, False or 'last', got {keep_after_forward!r}; "
            "True keeps each unit gathered from its forward to its backward pass"
        )
    if keep_after_forward and zero != 3:
        raise ZeroOptError(
            f"keep_after_forward is an argument of ZeRO stage 3, and zero is {zero}; leave "
            "it out, or give zero=3"
        )
    if not isinstance(offload, bool) and offload != "parameters":
        raise ZeroOptError(
            f"offload is True, False or 'parameters', got {offload!r}; True keeps the "
            "optimizer's state in the memory of the host"
        )
    if isinstance(zero, bool) or zero not in (0, 1, 2, 3):
        raise ZeroOptError(f"zero is a stage, 0, 1, 2 or 3, got {zero!r}")
    if offload == "parameters" and zero != 3:
        raise ZeroOptError(
            f"offload='parameters' keeps slices of units on the host, and zero is {zero}; "
            "give zero=3, or offload=True"
        )
    check_max_norm(max_norm)
    if not _is_number(timeout) or not 0 < timeout < float("inf"):
        raise ZeroOptError(f"timeout must be a positive number of seconds, got {timeout!r}")
    is_number = (
        isinstance(loss_scale, int | float)
        and loss_scale is not True
        and 0 < loss_scale < float("inf")
    )
    if loss_scale not in (None, "dynamic") and not is_number:
        raise ZeroOptError(
            f"loss_scale must be 'dynamic' or a positive number, got {loss_scale!r}; leave "
            "it out where losses are not scaled"
        )
    check_listed_once(groups)
    names: dict[str, torch.Tensor] = {}
    for number, group in enumerate(groups):
        where = f"in parameter group {number}, "
        recipe.check_values(where, group.options)
        recipe.check_unread(where, group.options)
        _warn_of_typos(where, recipe, group.options)
        if "max_norm" in group.options:
            raise ZeroOptError(
                f"parameter group {number} has 'max_norm', and clipping is by the norm of "
                "all gradients; make max_norm an argument of the optimizer"
            )
        for option in recipe.list_unknown():
            if group.options.get(option):
                raise ZeroOptError(
                    f"parameter group {number} has '{option}', which {optimizer} does not "
                    "support; leave it out"
                )
        for name, parameter in group.params:
            if not parameter.requires_grad:
                continue
            check_parameter(name, parameter, loss_scale is not None)
            check_free(name, parameter)
            if names.setdefault(name, parameter) is not parameter:
                raise ZeroOptError(
                    f"two parameters have the name '{name}'; give each a name of its own"
                )


def list_trained(groups: list[ListedGroup]) -> list[Listed]:
    """The parameters that require a gradient."""
    trained: list[Listed] = [
        (number, name, parameter)
        for number, group in enumerate(groups)
        for name, parameter in group.params
        if parameter.requires_grad
    ]
    if not trained:
        raise ZeroOptError(
            "no parameter requires a gradient, so nothing is trained; call "
            "requires_grad_() before the optimizer is created"
        )
    return trained


def list_with_frozen(
    trained: list[Listed], frozen: list[Named], units: list[Unit]
) -> list[Listed]:
    """All parameters that the step knows. The compiler has the units in the order of their
    first parameters, which must be that of the model: neighbours share no memory."""
    if not frozen:
        return trained
    names = {name for _, name, _ in trained}
    listed = list(trained)
    for name, parameter in frozen:
        while name in names:
            name += ".frozen"
        names.add(name)
        listed.append((None, name, parameter))
    place = {key: number for number, unit in enumerate(units) for key in unit.parameters}
    return sorted(listed, key=lambda entry: place.get(id(entry[2]), len(units)))


def describe_step(
    recipe: Recipe,
    listed: list[Listed],
    units: list[Unit],
    has_max_norm: bool,
    loss_scale: LossScale,
    one_backward: bool,
    ranks: int,
    stage: int,
    offload: Offload,
    keep_after_forward: KeepAfterForward,
    unit_order: str,
    prefetch_units: int,
    reduce: str,
    accumulate: str,
    gather_dtype: torch.dtype | None,
    target: str | None,
) -> compiler.StepDescription:
    # torch sums the gradients of backward passes, and so does this step: whether the loss
    # is divided by their number is for the caller to say.
    choices: dict[str, Any] = {"loss_divided": True}
    if has_max_norm:
        choices["max_norm"] = "max_norm"
    if one_backward:
        choices["one_backward"] = True
    if loss_scale is not None:
        choices["loss_scale"] = "torch" if loss_scale == "dynamic" else float(loss_scale)
    unit_names = {key: unit.name for unit in units for key in unit.parameters}
    if gather_dtype is not None and unit_names:
        choices["gather_dtype"] = DTYPES[gather_dtype]
    return compiler.StepDescription(
        parameters=tuple(
            compiler.Parameter(
                name,
                tuple(parameter.shape),
                DTYPES[parameter.dtype],
                None if number is None else f"group{number}",
                unit_names.get(id(parameter)),
            )
            for number, name, parameter in listed
        ),
        groups={
            f"group{number}": {hyper: f"group{number}.{hyper}" for hyper in recipe.hyper}
            for number, _, _ in listed
            if number is not None
        },
        optimizer=recipe.name,
        ir=recipe.ir,
        choices=choices,
        ranks=ranks,
        stage=stage,
        offload=offload if isinstance(offload, str) else ("none", "optimizer")[offload],
        keep_after_forward="last"
        if keep_after_forward == "last"
        else ("none", "all")[bool(keep_after_forward)],
        unit_order=unit_order,
        prefetch_units=prefetch_units,
        reduce=reduce,
        accumulate=accumulate,
        target=target,
    )
