# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a list of parameters and a recipe to the bytes of a compiled step."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from zero_opt._locate import find_compiler
from zero_opt.errors import ZeroOptError

_ONE_BUCKET = "1048576GiB"
_PROGRAM = pathlib.Path(__file__).with_name("_compile.py")


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter. A backward pass may leave it without a gradient. A step then leaves the
    parameter and its state as they are, as PyTorch does."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # also that of its gradient
    group: str | None  # None: frozen
    unit: str | None = None  # of stage 3

    def describe(self) -> str:
        unit = f" of unit '{self.unit}'" if self.unit else ""
        kind = "frozen parameter" if self.group is None else "parameter"
        return f"{kind} '{self.name}'{unit} of shape {self.shape} in {self.dtype}"

    def to_json(self) -> dict[str, object]:
        fields = {k: v for k, v in dataclasses.asdict(self).items() if v is not None}
        return fields | ({"frozen": True} if self.group is None else {"absent": "skip"})


@dataclasses.dataclass(frozen=True)
class StepDescription:
    """A step as the compiler takes it. Hyperparameters of a group are inputs of apply:
    `groups` has the name of the input for each. `choices` are the items of the recipe
    behind the optimizer, which `ir` is, or which `optimizer` names."""

    parameters: tuple[Parameter, ...]
    groups: dict[str, dict[str, str]]
    optimizer: str
    choices: dict[str, object]
    ranks: int
    stage: int
    ir: str | None = None
    offload: str = "none"
    keep_after_forward: str = "none"
    unit_order: str = "calls"
    prefetch_units: int = 1  # of a declared order
    reduce: str = "backward"
    accumulate: str = "in-place"
    target: str | None = None  # besides the CPU

    @property
    def recipe(self) -> str:
        return json.dumps({"optimizer": self.ir or self.optimizer, **self.choices})

    def describe(self) -> str:
        choices = [
            name if value is True or value == name else f"{name}={value}"
            for name, value in self.choices.items()
        ]
        return f"'{','.join([self.optimizer, *choices])}' of stage {self.stage}"

    def to_json(self) -> str:
        parameters = [parameter.to_json() for parameter in self.parameters]
        return json.dumps({"parameters": parameters, "groups": self.groups})

    @property
    def name(self) -> str:
        """Of the step, and no parameter's."""
        names = {parameter.name for parameter in self.parameters}
        name = "train"
        while name in names:
            name += "_"
        return name

    def get_options(self) -> dict[str, str | int]:
        options: dict[str, str | int] = {
            "name": self.name,
            "mesh": f"dp={self.ranks}",
            "stage": self.stage,
        }
        if self.offload != "none":
            options["offload"] = self.offload
        elif self.ranks == 1:
            # Nothing is sent. All stages then compute the same, stage 0 with the fewest
            # copies, and a second bucket would only be more launches.
            return self._add_target(options | {"stage": 0, "bucket-bytes": _ONE_BUCKET})
        if self.keep_after_forward != "none":
            options["keep-after-forward"] = self.keep_after_forward
        if self.unit_order != "calls":
            options["unit-order"] = self.unit_order
            options["prefetch-units"] = self.prefetch_units
        if self.reduce != "backward":
            options["reduce"] = self.reduce
        if self.accumulate != "in-place":
            options["accumulate"] = self.accumulate
        return self._add_target(options)

    def _add_target(self, options: dict[str, str | int]) -> dict[str, str | int]:
        return options if self.target is None else options | {"target": self.target}


def get_cache_folder() -> pathlib.Path:
    if folder := os.environ.get("ZERO_OPT_CACHE"):
        return pathlib.Path(folder)
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "zero_opt"


def _describe_end(result: subprocess.CompletedProcess[bytes]) -> str:
    """How a compiler ended that gave no answer."""
    if result.returncode < 0:
        return f"the compiler ended with signal {-result.returncode}"
    lines = result.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"the compiler ended with code {result.returncode}"


def _run_compiler(step: StepDescription, folder: pathlib.Path) -> tuple[bytes, bool]:
    """The library of |step|, and whether |folder| had it.

    The compiler has a process of its own. A crash of it is an error of the training
    script then, and not its end; Ctrl-C ends it; the memory of LLVM is given back; and no
    process with threads and gigabytes is forked, as the compiler does.
    """
    request = {
        "parameters": step.to_json(),
        "recipe": step.recipe,
        "options": json.dumps(step.get_options() | {"cache": str(folder)}),
    }
    # Without -I and -S, modules and folders of the script could change what is run.
    command = [sys.executable, "-I", "-S", str(_PROGRAM), str(find_compiler())]
    try:
        # What a compiler leaves that is ended is removed, too.
        with tempfile.TemporaryDirectory() as scratch:
            result = subprocess.run(
                command,
                input=json.dumps(request).encode(),
                capture_output=True,
                check=False,
                env=os.environ | {"TMPDIR": scratch},
            )
    except OSError as error:
        raise ZeroOptError(f"the compiler cannot be started: {error}") from error
    line, _, library = result.stdout.partition(b"\n")
    head = json.loads(line) if line.startswith(b"{") else {}
    if head.get("bytes") != len(library):
        raise ZeroOptError(f"the step cannot be compiled: {_describe_end(result)}")
    if head["status"] == 0:
        return library, head["is_cached"]
    reason = "; ".join(head["errors"])
    _, is_about_cache, cause = reason.partition(" of --cache: ")
    if is_about_cache:
        raise ZeroOptError(
            f"the cache folder {folder} cannot be written: {cause}; set ZERO_OPT_CACHE to "
            "another folder"
        )
    raise ZeroOptError(f"the step cannot be compiled: {reason or 'no memory'}")


def compile_step(step: StepDescription) -> bytes:
    """The library of |step|, from the compiler's cache or compiled."""
    library, _ = _run_compiler(step, get_cache_folder())
    return library
