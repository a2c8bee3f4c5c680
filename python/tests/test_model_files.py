# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An imported config.json has the parameters of the model that transformers makes of it."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from typing import Any

import pytest
import torch

from zero_opt._locate import find_compiler

transformers = pytest.importorskip("transformers")

SIZES = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "vocab_size": 29,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "pad_token_id": 0,
}
LATENT = {
    "q_lora_rank": 8,
    "kv_lora_rank": 10,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 6,
    "v_head_dim": 5,
    "moe_intermediate_size": 7,
    "n_routed_experts": 4,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
    # All layers: transformers puts experts into one tensor.
    "first_k_dense_replace": 2,
}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_positions": 7, "vocab_size": 29, "n_head": 4}
FLAGS = [{}, {"attention_bias": True}, {"tie_word_embeddings": True}]
DENSE = ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text"]
MODELS = [
    *((family, {**SIZES, **flags}) for family in DENSE for flags in FLAGS),
    ("llama", {**SIZES, "mlp_bias": True}),
    *(("deepseek_v3", {**SIZES, **LATENT, **flags}) for flags in FLAGS),
    ("gpt2", GPT2),
    ("gpt2", {**GPT2, "n_inner": 20, "tie_word_embeddings": False}),
]


def make_model(family: str, config: dict[str, Any]) -> dict[str, list[int]]:
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(
            transformers.AutoConfig.for_model(family, **config)
        )
    return {name: list(p.shape) for name, p in model.named_parameters()}


def import_model(
    family: str, config: dict[str, Any], folder: pathlib.Path
) -> dict[str, list[int]]:
    (folder / "config.json").write_text(json.dumps({"model_type": family, **config}))
    (folder / "ds.json").write_text(json.dumps({"optimizer": {"type": "AdamW"}}))
    step = subprocess.run(
        [
            find_compiler().parent.parent / "bin" / "zero-translate",
            f"--import-deepspeed={folder}/ds.json",
            f"--model={folder}/config.json",
            "--mesh=dp=2",
        ],
        check=True,
        text=True,
        capture_output=True,
    ).stdout
    return {
        name: [int(extent) for extent in shape.split("x")[:-1]]
        for name, shape in re.findall(r"^zero\.parameter @(\S+) : (\S+)", step, re.M)
    }


@pytest.mark.parametrize(("family", "config"), MODELS)
def test_parameters(family: str, config: dict[str, Any], tmp_path: pathlib.Path) -> None:
    expected = make_model(family, config)
    assert import_model(family, config, tmp_path) == expected
