# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all tests share: a cache of their own, one thread, and processes that are ranks."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import pytest
import torch
from ranks import Workers


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("cache")
    os.environ["ZERO_OPT_CACHE"] = str(folder)
    torch.set_num_threads(1)
    return folder


@pytest.fixture(scope="session")
def workers(
    cache: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    """Two ranks with gloo."""
    found = Workers(2, tmp_path_factory.mktemp("ranks"))
    yield found
    found.stop()


@pytest.fixture(scope="session")
def three_workers(
    cache: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    found = Workers(3, tmp_path_factory.mktemp("ranks"))
    yield found
    found.stop()
