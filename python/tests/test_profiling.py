# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces and ranges of NVTX, which a user asks for by environment variables."""

from __future__ import annotations

import json
import pathlib
import shutil
import sys

import pytest
import torch
from torch import nn

import zero_opt.torch as zo
from zero_opt import ZeroOptError, _locate


def make_step() -> None:
    model = nn.Linear(3, 2)
    optimizer = zo.SGD(model, lr=0.5)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    optimizer.close()


def test_trace(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZERO_OPT_TRACE", str(tmp_path))
    make_step()
    events = json.loads((tmp_path / "rank-0.json").read_text())
    assert {"gradient", "apply"} <= {event["name"] for event in events}


def test_nvtx_is_on_or_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZERO_OPT_NVTX", "yes")
    with pytest.raises(ZeroOptError, match="ZERO_OPT_NVTX is 'yes', expected 0 or 1"):
        make_step()


def is_loaded(path: pathlib.Path) -> bool:
    return str(path) in pathlib.Path("/proc/self/maps").read_text()


def test_libraries_of_wheels(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first that loads; a damaged one is left to the runtime's message."""
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    (folder / "libfirst.so.1").write_text("no library")
    for name in ("libsecond.so.1", "libthird.so.1"):
        shutil.copy(_locate.find_runtime(), folder / name)
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    _locate.load_from_wheel("libnone.so.1", "libfirst.so.1")
    _locate.load_from_wheel("libfirst.so.1", "libsecond.so.1", "libthird.so.1")
    assert is_loaded(folder / "libsecond.so.1")
    assert not is_loaded(folder / "libthird.so.1")
    monkeypatch.setattr(sys, "path", [])
    _locate.load_from_wheel("libsecond.so.1")  # there is no wheel of NVIDIA
