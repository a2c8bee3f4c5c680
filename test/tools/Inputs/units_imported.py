#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports published models at stage 3, and compares what zero-explain says with a closed
form: units_imported.py BIN MODEL RANKS [--more]

Matrices of layers are of units. Their norms and biases have at most 100000 elements, and
are of no unit, as are embeddings, the head and the last norm. --more has a closed form with
one element more in each unit for each 500, to see that it is found.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from huggingface_totals import MODELS
from units_plan import BF16, Model, compare

CONFIG = {
    "bf16": {"enabled": True},
    "data_types": {"grad_accum_dtype": "fp32"},
    "optimizer": {"type": "AdamW"},
    "zero_optimization": {"stage": 3},
}


def explain(binaries, model, ranks, config=CONFIG, expert_ranks=1):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("ds.json", config), ("config.json", model)):
            (pathlib.Path(folder) / name).write_text(json.dumps(content))
        command = [f"{binaries}/zero-explain", "--import-deepspeed=ds.json", "--model=config.json"]
        experts = f":ep={expert_ranks}" * (expert_ranks > 1)
        command += [f"--mesh=dp={ranks // expert_ranks}{experts}", "--json"]
        return json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout)


def get_sizes(model):
    """The layers, the elements of matrices of a layer, and those of all norms and biases,
    embeddings and heads."""
    if model["model_type"] == "gpt2":
        layers, width = model["n_layer"], model["n_embd"]
        rest = (model["vocab_size"] + model["n_positions"]) * width + 2 * width
        return layers, 12 * width**2, rest + layers * 13 * width
    layers, width = model["num_hidden_layers"], model["hidden_size"]
    kept = width * model["num_key_value_heads"] // model["num_attention_heads"]
    unit = 2 * width**2 + 2 * kept * width + 3 * width * model["intermediate_size"]
    rest = 2 * model["vocab_size"] * width + width
    return layers, unit, rest + layers * 2 * width


def main(binaries, name, ranks, *more):
    model, elements = MODELS[name]
    ranks = int(ranks)
    layers, unit, rest = get_sizes(model)
    assert layers * unit + rest == elements, name
    if "--more" in more:
        unit += unit // 500
    explained = explain(binaries, model, ranks)
    wrong = compare(explained["plan"], ranks, Model(layers, unit, 0, rest))
    costs = {(c["stage"], c["offload"]): c["cost"] for c in explained["choices"]}
    print("stages:", *(f"{stage}/{offload}" for stage, offload in costs))
    gib = [f"{costs[3, offload]['device_bytes'] / 2**30:.2f}" for offload in ("none", "parameters")]
    print("GiB of a rank's device at stage 3:", *gib)
    # Each unit is gathered forward and backward, and its gradients are reduced.
    share = (ranks - 1) / ranks
    sent = BF16 * (3 * layers * unit + rest) * share
    wrong += not 0 <= costs[3, "none"]["bytes_sent_in_backward"] / sent - 1 < 0.001
    # Master weights and two moments move to the host.
    slice_ = (layers * unit + rest) / ranks
    wrong += not 0 <= costs[3, "optimizer"]["host_bytes"] / slice_ / (12 + 4 + 2) - 1 < 0.001
    print(f"{name} on {ranks} ranks: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
