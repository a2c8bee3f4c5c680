#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports published models, and compares the memory that zero-explain says with closed forms
of all stages: stages_imported.py BIN [--more]

Parameters and arriving gradients are bf16, sums and state f32. Elements are the published
ones. Pads may add a thousandth. --more has a hundredth more elements, to see that it is found.
"""

import sys

from huggingface_totals import MODELS
from units_imported import explain

BUCKET = 500_000_000  # elements, as DeepSpeed has it
CONFIG = {
    "bf16": {"enabled": True},
    "data_types": {"grad_accum_dtype": "fp32"},
    "gradient_accumulation_steps": 4,
    "train_micro_batch_size_per_gpu": 1,
    "optimizer": {"type": "AdamW"},
    "zero_optimization": {"stage": 1, "reduce_bucket_size": BUCKET},
}
# Ranks, and how many of them divide the experts.
CASES = [
    *((name, ranks, 1) for name in ("gpt2", "llama-3-8b") for ranks in (1, 8, 64, 1024)),
    *((name, ranks, 1) for name in ("llama-3-70b", "llama-3-405b") for ranks in (64, 1024)),
    *(("mixtral-8x7b", 64, experts) for experts in (1, 8)),
    *(("deepseek-v3", 1024, experts) for experts in (1, 64)),
]


def count_experts(model):
    """The elements of all experts."""
    count = model.get("num_local_experts", 0) or model.get("n_routed_experts", 0)
    layers = model.get("num_hidden_layers", 0) - model.get("first_k_dense_replace", 0)
    inner = model.get("moe_intermediate_size") or model.get("intermediate_size", 0)
    return count * layers * 3 * model.get("hidden_size", 0) * inner


def get_forms(elements, share, buckets):
    """By stage and offload: the bytes of the device, and those of the host, of a rank that
    has |elements| and updates a |share| of them."""
    # Two buckets in bf16: what arrives at stage 2, what travels at the others.
    pair = 2 * (max(buckets[0::2]) + max(buckets[1::2], default=0))
    kept = 2 * elements + 12 * share + pair
    return {
        (0, "none"): ((2 + 12 + 4) * elements + pair, 0),
        (1, "none"): (kept + 4 * elements + 4 * share, 0),
        (2, "none"): (kept + 4 * share, 0),
        # The host has state, the gradient that moved, and updated parameters.
        (1, "optimizer"): (kept - 12 * share + 4 * elements + 4 * share, (12 + 4 + 2) * share),
        (2, "optimizer"): (kept - 12 * share + 4 * share, (12 + 4 + 2) * share),
    }


def estimate(elements, largest, ranks):
    """What the estimators of DeepSpeed say of the device: in its source, functions
    estimate_zero2_model_states_mem_needs and estimate_zero3_model_states_mem_needs."""
    return {
        (2, "none"): 4 * elements + 16 * elements / ranks,
        (2, "optimizer"): 2 * elements,
        (3, "none"): 4 * largest + 18 * elements / ranks,
    }


def main(binaries, *more):
    wrong = 0
    cases = CASES[:4] if "--more" in more else CASES
    for name, ranks, expert_ranks in cases:
        model, elements = MODELS[name]
        explained = explain(binaries, model, ranks, CONFIG, expert_ranks)
        buckets = [bucket["elements"] for bucket in explained["plan"]["buckets"]]
        here = elements - count_experts(model) * (1 - 1 / expert_ranks)
        more_of = 1.01 if "--more" in more else 1
        forms = get_forms(here * more_of, elements / ranks * more_of, buckets)
        costs = {(c["stage"], c["offload"]): c["cost"] for c in explained["choices"]}
        for key, (device, host) in forms.items():
            found = costs[key]
            for expected, bytes_ in ((device, found["device_bytes"]), (host, found["host_bytes"])):
                if not 0 <= bytes_ - expected <= expected / 1000 + 4096:
                    wrong += 1
                    print(f"{name} on {ranks} ranks, {key}: {bytes_}, expected {expected}")
        if (name, ranks) == ("llama-3-8b", 64):
            largest = model["vocab_size"] * model["hidden_size"]
            for key, theirs in estimate(elements, largest, ranks).items():
                ours = costs[key]["device_bytes"]
                print(*key, f"{theirs / 2**30:.2f} {ours / 2**30:.2f} GiB")
    print(f"{len(cases)} plans of published models, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
