# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a list of parameters and a recipe to the bytes of a compiled step."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile

from zero_opt._locate import find_compiler
from zero_opt.errors import ZeroOptError

# A change of what `compile_step` asks of the compiler needs another number.
_CACHE_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter that one backward pass may leave without a gradient. A step then
    leaves the parameter and its state as they are, as PyTorch does."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # also that of its gradient
    group: str

    def describe(self) -> str:
        return f"parameter '{self.name}' of shape {self.shape} in {self.dtype}"

    def to_json(self) -> dict[str, object]:
        return dataclasses.asdict(self) | {"absent": "skip"}


@dataclasses.dataclass(frozen=True)
class StepDescription:
    """A step as zero-compile takes it. Hyperparameters of a group are inputs of apply:
    `groups` has the name of the input for each."""

    parameters: tuple[Parameter, ...]
    groups: dict[str, dict[str, str]]
    recipe: str
    ranks: int
    stage: int

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

    def list_options(self) -> list[str]:
        return [
            f"--recipe={self.recipe}",
            f"--name={self.name}",
            f"--mesh=dp={self.ranks}",
            f"--stage={self.stage}",
        ]


def get_cache_folder() -> pathlib.Path:
    if folder := os.environ.get("ZERO_OPT_CACHE"):
        return pathlib.Path(folder)
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "zero_opt"


def _get_key(step: StepDescription, compiler: pathlib.Path) -> str:
    """The key of a step in the cache. A compiler that was built anew is another one."""
    status = compiler.stat()
    content = [
        _CACHE_FORMAT,
        step.to_json(),
        step.list_options(),
        str(compiler),
        status.st_size,
        status.st_mtime_ns,
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _run_compiler(
    step: StepDescription, compiler: pathlib.Path, folder: pathlib.Path
) -> pathlib.Path:
    command = [
        str(compiler),
        "--parameters=-",
        *step.list_options(),
        f"-o={folder}",
        "--json",
    ]
    result = subprocess.run(
        command, input=step.to_json(), capture_output=True, text=True, check=False
    )
    if result.returncode == 0:
        return folder / f"lib{step.name}.so"
    try:
        errors = json.loads(result.stdout)["errors"]
        reason = "; ".join(error["message"] for error in errors)
    except (ValueError, KeyError, TypeError):
        reason = result.stderr.strip() or f"exit code {result.returncode}"
    raise ZeroOptError(f"the step cannot be compiled: {reason}")


def compile_step(step: StepDescription) -> bytes:
    """The library of |step|, from the cache or compiled.

    Jobs that compile the same step at the same time write the same file, each under a
    name of its own first. A reader finds a whole file or none.
    """
    compiler = find_compiler()
    folder = get_cache_folder()
    kept = folder / f"{_get_key(step, compiler)}.so"
    if kept.is_file():
        return kept.read_bytes()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            library = _run_compiler(step, compiler, pathlib.Path(scratch))
            content = library.read_bytes()
            library.replace(kept)
    except OSError as error:
        raise ZeroOptError(
            f"the cache folder {folder} cannot be written: {error.strerror}; set "
            "ZERO_OPT_CACHE to another folder"
        ) from error
    return content
