# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example trains, alone and with torchrun, and the loss falls."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "examples/train_gpt.py"


@pytest.mark.parametrize("ranks, dtype", [(1, "float32"), (2, "bfloat16")])
def test_example(ranks: int, dtype: str) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [
        sys.executable,
        *(launcher if ranks > 1 else []),
        str(EXAMPLE),
        "--steps=40",
        f"--dtype={dtype}",
    ]
    result = subprocess.run(
        command,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", result.stdout)]
    assert len(losses) == 2
    assert losses[1] < losses[0] - 0.5
