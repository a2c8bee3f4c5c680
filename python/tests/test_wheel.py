# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A wheel has all that the package needs: it works without a build folder and LLVM."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest
import torch

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
# Where the machine's LLVM, compilers and linkers are.
HIDDEN = ("/usr/lib/llvm-19", "/usr/lib/llvm-14", "/usr/lib/gcc", "/usr/local/bin")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def make_wheel(
    folder: pathlib.Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *PIP,
            "wheel",
            "--no-build-isolation",
            "--no-deps",
            "--no-index",
            f"--wheel-dir={folder}",
            str(PACKAGE),
        ],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("wheel")
    result = make_wheel(folder, {})
    assert result.returncode == 0, result.stdout + result.stderr
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def python(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Of an environment with the wheel, and with torch of this one."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin/python"
    install = ["--python", str(python), "install", "--no-deps", "--no-index", "-q"]
    # Otherwise pip finds the package of the clone, and installs nothing.
    environment = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    subprocess.run([*PIP, *install, str(wheel)], env=environment, check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "torch.pth").write_text(f"{pathlib.Path(torch.__file__).parents[1]}\n")
    return python


def run_alone(
    python: pathlib.Path, tmp_path: pathlib.Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Runs |python| where nothing else is on the PATH, and folders of the machine with
    compilers and linkers are empty, as is that of the build."""
    hidden = [folder for folder in HIDDEN if os.path.isdir(folder)]
    hidden += [os.path.join(os.environ["ZERO_OPT_HOME"], name) for name in ("bin", "lib")]
    script = 'for f in $HIDDEN; do mount -t tmpfs none "$f" || exit 77; done; PATH=; '
    result = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script + 'exec "$@"', "sh", str(python), *arguments],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HIDDEN": " ".join(hidden),
            "HOME": str(tmp_path),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if result.returncode == 77 or "unshare failed" in result.stderr:
        pytest.skip("folders cannot be hidden here")
    return result


def test_what_a_wheel_has(wheel: pathlib.Path) -> None:
    assert re.fullmatch(r"zero_opt-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        licences = archive.read("zero_opt/LICENSES").decode()
    modules = {str(file.relative_to(PACKAGE)) for file in PACKAGE.glob("zero_opt/**/*.py")}
    files = {f"zero_opt/lib/lib{name}.so" for name in ("zero_compiler", "zero_rt")}
    files |= modules | {"zero_opt/LICENSES", "zero_opt/py.typed"}
    assert {name for name in names if ".dist-info/" not in name} == files
    for text in ("LLVM Exceptions", "GCC Runtime Library Exception", "Redistribution"):
        assert text.lower() in licences.lower()
    assert wheel.stat().st_size < 22e6  # README.md has the size


def test_it_trains_on_a_machine_without_llvm(
    python: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    example = str(PACKAGE / "examples/train_gpt.py")
    result = run_alone(python, tmp_path, *launcher, example, "--steps=40")
    assert result.returncode == 0, result.stderr
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", result.stdout)]
    assert len(losses) == 2
    assert losses[1] < losses[0] - 0.5


_PROGRAM = """
import ctypes, pathlib, zero_opt
from zero_opt import _abi, _locate

lib = pathlib.Path(zero_opt.__file__).with_name("lib")
assert _locate.find_compiler().parent == _locate.find_runtime().parent == lib
ctypes.CDLL(str(_locate.find_compiler()), mode=ctypes.RTLD_GLOBAL)
_abi.load()

import torch
import zero_opt.torch as zo

model = torch.nn.Linear(3, 1, bias=False)
torch.nn.init.zeros_(model.weight)
optimizer = zo.SGD(model, lr=1.0)
model(torch.ones(2, 3)).sum().backward()
optimizer.step()
print(model.weight.tolist())
"""


def test_torch_after_the_libraries(python: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The example imports torch before. Here all that the libraries export is in the way
    of what torch looks for."""
    result = run_alone(python, tmp_path, "-c", _PROGRAM)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[[-2.0, -2.0, -2.0]]\n"


def test_nothing_was_built(tmp_path: pathlib.Path) -> None:
    result = make_wheel(tmp_path, {"ZERO_OPT_HOME": str(tmp_path)})
    assert result.returncode == 1
    message = (
        f"zero-opt: libzero_compiler.so and libzero_rt.so were not found in {tmp_path}/lib;"
        " run 'bash tools/scripts/build.sh build -- zero_compiler zero_rt' in the clone, "
        "or set ZERO_OPT_HOME to a build folder or to an installed prefix"
    )
    assert message in result.stderr
    assert not list(tmp_path.iterdir())
