# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cache of compiled steps, and errors of the compiler and of the installation."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from zero_opt import ZeroOptError, _locate, compiler


def describe(
    recipe: str = "adamw,loss_divided", names: tuple[str, ...] = ("w",)
) -> compiler.StepDescription:
    hyper = {name: f"group0.{name}" for name in ("lr", "wd", "beta1", "beta2", "eps")}
    return compiler.StepDescription(
        tuple(compiler.Parameter(name, (3, 4), "bf16", "group0") for name in names),
        {"group0": hyper},
        recipe,
        1,
        1,
    )


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("ZERO_OPT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_second_time_nothing_is_compiled(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compiler.compile_step(describe())
    assert [file.suffix for file in folder.iterdir()] == [".so"]
    monkeypatch.setattr(compiler, "_run_compiler", None)
    assert compiler.compile_step(describe()) == first
    with pytest.raises(TypeError):  # another step
        compiler.compile_step(describe("adamw,loss_divided,max_norm=1"))


@pytest.mark.usefixtures("folder")
def test_parameters_with_names_of_the_step_itself() -> None:
    names = ("train", "train_", "cluster", "adamw", "group0", "first", "update", "b0")
    assert compiler.compile_step(describe(names=names))


def test_errors_of_the_compiler(folder: pathlib.Path) -> None:
    with pytest.raises(ZeroOptError) as raised:
        compiler.compile_step(describe("adamx"))
    assert str(raised.value) == (
        "the step cannot be compiled: --recipe begins with an optimizer, adam, adamw, lion "
        "or sgd, got 'adamx'"
    )
    assert not list(folder.iterdir())


def test_two_jobs_at_once(folder: pathlib.Path) -> None:
    program = "import test_compiler, zero_opt.compiler as c; "
    program += "print(len(c.compile_step(test_compiler.describe())))"
    jobs = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    answers = {job.communicate(timeout=120)[0] for job in jobs}
    assert all(job.returncode == 0 for job in jobs)
    (kept,) = folder.iterdir()
    assert answers == {f"{kept.stat().st_size}\n"}


def test_a_cache_that_cannot_be_written(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("ZERO_OPT_CACHE", str(file / "cache"))
    with pytest.raises(
        ZeroOptError, match="cannot be written: Not a directory; set ZERO_OPT"
    ):
        compiler.compile_step(describe())


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("ZERO_OPT_HOME", str(tmp_path))
    with pytest.raises(ZeroOptError) as raised:
        _locate.find_compiler()
    assert str(raised.value) == (
        f"the compiler bin/zero-compile was not found in {tmp_path}; build it, or set "
        "ZERO_OPT_HOME to a build folder or to an installed prefix"
    )
    with pytest.raises(
        ZeroOptError, match="the runtime lib/libzero_rt.so was not found in"
    ):
        _locate.find_runtime()
