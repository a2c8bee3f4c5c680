# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The blocks of docs/pytorch.md run, and say what the page says."""

from __future__ import annotations

import os
import pathlib
import re
from typing import Any

import pytest
import torch
from ranks import Workers

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from hugging_face import launched  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/pytorch.md"
EXAMPLES = PAGE.parents[1] / "examples"
FIRST = "Quick start"


def read_sections() -> dict[str, list[str]]:
    """The blocks of Python by heading."""
    sections = {}
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if blocks := re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            sections[heading] = blocks
    return sections


def run(heading: str, folder: str) -> float:
    """The loss at the end, divided by the one of an untrained model."""
    sections = read_sections()
    first, *rest = sections[FIRST]
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    before = os.getcwd()
    os.chdir(folder)
    try:
        with launched():
            exec(compile(first, str(PAGE), "exec"), names)
            batch = next(names["make_batches"](1))
            loss = names["compute_loss"](batch).item()
            for block in rest if heading == FIRST else sections[heading]:
                exec(compile(block, str(PAGE), "exec"), names)
            x, y = (tensor.to(names["model"][0].weight.dtype) for tensor in batch)
            return names["compute_loss"]((x, y)).item() / loss
    finally:
        os.chdir(before)


@pytest.mark.parametrize("heading", read_sections())
def test_section(workers: Workers, tmp_path: pathlib.Path, heading: str) -> None:
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "examples").symlink_to(EXAMPLES)
    found = [run(heading, str(tmp_path / "one"))]
    found += workers.run(run, heading, str(tmp_path / "two"))
    if heading in (FIRST, "Accumulation"):
        assert max(found) < 0.5
    elif heading not in ("Parameter groups", "Hugging Face"):
        assert max(found) < 1


def test_the_page_has_these_sections() -> None:
    assert len(read_sections()) == 11
    assert sum(len(blocks) for blocks in read_sections().values()) == 17
