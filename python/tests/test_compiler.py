# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cache of compiled steps, and errors of the compiler and of the installation."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from unittest import mock

import pytest
from ranks import Workers
from torch import nn

import zero_opt.torch as zo
from zero_opt import ZeroOptError, _compile, _locate, compiler


def describe(
    optimizer: str = "adamw", names: tuple[str, ...] = ("w",), **choices: object
) -> compiler.StepDescription:
    hyper = {name: f"group0.{name}" for name in ("lr", "wd", "beta1", "beta2", "eps")}
    return compiler.StepDescription(
        tuple(compiler.Parameter(name, (3, 4), "bf16", "group0") for name in names),
        {"group0": hyper},
        optimizer,
        {"loss_divided": True, **choices},
        1,
        1,
    )


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("ZERO_OPT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_second_time_nothing_is_compiled(folder: pathlib.Path) -> None:
    first, is_cached = compiler._run_compiler(describe(), folder)
    assert not is_cached and len(list(folder.iterdir())) == 1
    assert compiler._run_compiler(describe(), folder) == (first, True)
    other = describe(max_norm=1)
    assert not compiler._run_compiler(other, folder)[1]


def test_a_damaged_file_of_the_cache(folder: pathlib.Path) -> None:
    first = compiler.compile_step(describe())
    (kept,) = folder.iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert compiler._run_compiler(describe(), folder) == (first, False)


_USES = {
    "torch": "import torch; print(torch.ones(3).add(1).sum().item())",
    "compiler": "print(test_compiler.compile_here())",
}


def compile_here() -> int:
    step = describe()
    texts = {"parameters": step.to_json(), "recipe": step.recipe, "options": "{}"}
    head, library = _compile.compile_texts(str(_locate.find_compiler()), texts)
    assert head["status"] == 0 and head["bytes"] == len(library), head
    return len(library)


@pytest.mark.parametrize("order", [("torch", "compiler"), ("compiler", "torch")])
def test_compiler_and_torch_in_one_process(order: tuple[str, str]) -> None:
    """The package does not do so. A program may, and LLVM and the standard library of one
    must not be those of the other."""
    program = "\n".join(["import test_compiler", *(_USES[name] for name in order * 2)])
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    printed = dict(zip(order, result.stdout.split()[2:], strict=True))
    assert printed == {"torch": "6.0", "compiler": str(compile_here())}


@pytest.mark.parametrize("signal_number", [0, signal.SIGSEGV])
def test_a_compiler_that_gives_no_answer(
    folder: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    signal_number: int,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import os\nos.kill(os.getpid(), {int(signal_number)})\n")
    monkeypatch.setattr(compiler, "_PROGRAM", program)
    ended = f"signal {int(signal_number)}" if signal_number else "code 0"
    with pytest.raises(ZeroOptError) as raised:
        compiler.compile_step(describe())
    message = "the step cannot be compiled: the compiler ended with "
    assert str(raised.value) == message + ended


@pytest.mark.usefixtures("folder")
def test_a_compiler_that_cannot_be_loaded(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "lib/libzero_compiler.so"
    library.parent.mkdir()
    library.write_text("text")
    monkeypatch.setenv("ZERO_OPT_HOME", str(tmp_path))
    with pytest.raises(ZeroOptError, match=f"OSError: {library}: file too short"):
        compiler.compile_step(describe())


def test_ctrl_c_ends_the_compiler(tmp_path: pathlib.Path) -> None:
    """Signal and exit code are those of Ctrl-C, and nothing goes on or is left."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, pathlib, tempfile, time\n"
        "tempfile.mkdtemp()\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()) + '.')\n"
        "time.sleep(100)\n"
    )
    client = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import pathlib, test_compiler, zero_opt.compiler as c; "
            f"c._PROGRAM = pathlib.Path({str(program)!r}); "
            "c.compile_step(test_compiler.describe())",
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    pid = tmp_path / "pid"
    deadline = time.monotonic() + 60
    while not pid.is_file() or not pid.read_text().endswith("."):
        assert time.monotonic() < deadline and client.poll() is None
        time.sleep(0.01)
    client.send_signal(signal.SIGINT)
    assert client.communicate(timeout=60)[1].endswith("KeyboardInterrupt\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()[:-1]), 0)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["pid", "program.py"]


def count_compilers(folder: str) -> int:
    """How many compilers this rank has started for two optimizers."""
    started = mock.Mock(side_effect=compiler._run_compiler)
    with (
        mock.patch.object(compiler, "_run_compiler", started),
        mock.patch.dict(os.environ, ZERO_OPT_CACHE=folder),
    ):
        for size in (2, 3):
            zo.SGD(nn.Linear(size, 2)).close()
    return started.call_count


def test_only_rank_0_compiles(workers: Workers, tmp_path: pathlib.Path) -> None:
    assert workers.run(count_compilers, str(tmp_path)) == [2, 0]


@pytest.mark.usefixtures("folder")
def test_parameters_with_names_of_the_step_itself() -> None:
    names = ("train", "train_", "cluster", "adamw", "group0", "first", "update", "b0")
    assert compiler.compile_step(describe(names=names))


def test_errors_of_the_compiler(folder: pathlib.Path) -> None:
    with pytest.raises(ZeroOptError) as raised:
        compiler.compile_step(describe("adamx"))
    assert str(raised.value) == (
        "the step cannot be compiled: --recipe begins with an optimizer, adam, adamw, "
        "adamw_torch, lion or sgd, got 'adamx'"
    )
    assert not folder.exists()


def test_two_jobs_at_once(folder: pathlib.Path) -> None:
    """One compiles, and the others wait for its file."""
    program = "import pathlib, test_compiler, zero_opt.compiler as c; "
    program += f"folder = pathlib.Path({str(folder)!r}); "
    program += "library, cached = c._run_compiler(test_compiler.describe(), folder); "
    program += "print(len(library), cached)"
    jobs = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    answers = [job.communicate(timeout=120)[0].split() for job in jobs]
    assert all(job.returncode == 0 for job in jobs)
    assert len({size for size, _ in answers}) == 1
    assert sorted(cached for _, cached in answers) == ["False", "True", "True", "True"]
    assert len(list(folder.iterdir())) == 1


def test_a_script_that_ignores_its_children(folder: pathlib.Path) -> None:
    """The compiler waits for a process, and its exit code is lost."""
    program = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
    program += "import test_compiler, zero_opt.compiler as c; "
    program += "c.compile_step(test_compiler.describe())"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert len(list(folder.iterdir())) == 1


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
        f"the compiler lib/libzero_compiler.so was not found in {tmp_path}; build it, or "
        "set ZERO_OPT_HOME to a build folder or to an installed prefix"
    )
    with pytest.raises(
        ZeroOptError, match="the runtime lib/libzero_rt.so was not found in"
    ):
        _locate.find_runtime()
