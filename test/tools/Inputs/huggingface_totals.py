#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports models of Hugging Face, and compares the number of elements of their parameters
with the published one.

usage: huggingface_totals.py ZERO_TRANSLATE [NAME...]"""

import json
import pathlib
import subprocess
import sys
import tempfile


def llama(kind, vocabulary, hidden, inner, layers, heads, kept, **more):
    return {
        "model_type": kind,
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kept,
        **more,
    }


def gpt2(size, layers):
    sizes = {"n_embd": size, "n_layer": layers, "vocab_size": 50257}
    return {"model_type": "gpt2", "n_positions": 1024, **sizes}


DEEPSEEK = llama(
    "deepseek_v3",
    129280,
    7168,
    18432,
    61,
    128,
    128,
    moe_intermediate_size=2048,
    n_routed_experts=256,
    n_shared_experts=1,
    first_k_dense_replace=3,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_rope_head_dim=64,
    qk_nope_head_dim=128,
    v_head_dim=128,
)

# What the files of the models have: parameters that gradients reach, a tied head once.
MODELS = {
    "gpt2": (gpt2(768, 12), 124_439_808),
    "gpt2-xl": (gpt2(1600, 48), 1_557_611_200),
    "llama-3-8b": (llama("llama", 128256, 4096, 14336, 32, 32, 8), 8_030_261_248),
    "llama-3-70b": (llama("llama", 128256, 8192, 28672, 80, 64, 8), 70_553_706_496),
    "llama-3-405b": (
        llama("llama", 128256, 16384, 53248, 126, 128, 8),
        405_853_388_800,
    ),
    "llama-3.2-1b": (
        llama(
            "llama", 128256, 2048, 8192, 16, 32, 8, head_dim=64, tie_word_embeddings=True
        ),
        1_235_814_400,
    ),
    "mistral-7b": (llama("mistral", 32000, 4096, 14336, 32, 32, 8), 7_241_732_096),
    "qwen2.5-0.5b": (
        llama("qwen2", 151936, 896, 4864, 24, 14, 2, tie_word_embeddings=True),
        494_032_768,
    ),
    "qwen2.5-7b": (llama("qwen2", 152064, 3584, 18944, 28, 28, 4), 7_615_616_512),
    "qwen3-8b": (
        llama("qwen3", 151936, 4096, 12288, 36, 32, 8, head_dim=128),
        8_190_735_360,
    ),
    "gemma-2b": (llama("gemma", 256000, 2048, 16384, 18, 8, 1), 2_506_172_416),
    "gemma-2-2b": (llama("gemma2", 256000, 2304, 9216, 26, 8, 4), 2_614_341_888),
    "gemma-3-1b": (llama("gemma3_text", 262144, 1152, 6912, 26, 4, 1), 999_885_952),
    "mixtral-8x7b": (
        llama("mixtral", 32000, 4096, 14336, 32, 32, 8, num_local_experts=8),
        46_702_792_704,
    ),
    # Without the prediction of a further token, and without the corrections of
    # scores, which are buffers: 58 layers of 256.
    "deepseek-v3": (DEEPSEEK, 671_026_419_200 - 58 * 256),
}

DS = {"bf16": {"enabled": True}, "optimizer": {"type": "AdamW"}}


def main(tool, *names):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "ds.json").write_text(json.dumps(DS))
        for name in names or MODELS:
            config, expected = MODELS[name]
            (folder / "config.json").write_text(json.dumps(config))
            flags = ["--import-deepspeed=ds.json", "--model=config.json", "--json"]
            done = subprocess.run(
                [tool, *flags, "-o", "s.mlir"], cwd=folder, capture_output=True
            )
            result = json.loads(done.stdout)
            if result.get("elements") != expected:
                wrong += 1
                print(f"{name}: {result}, expected {expected}")
    print(f"{len(names or MODELS)} models, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
