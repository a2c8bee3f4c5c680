# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Closed forms of the schedule of quickstart in one bucket, at stage 2 on four ranks."""

import json
import math
import sys

explained, hidden, machine = (json.load(open(path)) for path in sys.argv[1:])
RANKS = 4
[bucket] = explained["plan"]["buckets"]
elements = bucket["elements"]
slice_ = elements // RANKS
[link] = [link for link in machine["links"][:1] if link["ranks"] >= RANKS]


def ring(bytes_, rounds=1):
    sent = rounds * bytes_ * (RANKS - 1) // RANKS
    return rounds * (RANKS - 1) * link["latency"] + sent / link["bandwidth"]


def kernel(bytes_):
    return bytes_ / machine["device_bandwidth"]


# Gradients in bf16 are read and written; one call follows the other.
arrive = kernel(2 * 2 * (3072 + 64 + 640 + 10))
reduce = ring(2 * elements)
norm = kernel(4 * slice_)
scalars = ring(8 * 4, rounds=2)
update = kernel((4 + 2 * 12 + 2) * slice_)
gather = ring(2 * elements)
[stage] = explained["schedule"]["stages"]
assert math.isclose(stage["seconds"], arrive + reduce + norm + scalars + update + gather)
assert stage["exposed"] == stage["seconds"]
busy = {s["stream"]: (s["calls"], s["busy"]) for s in stage["streams"]}
assert busy["compute"][0] == 6 and math.isclose(busy["compute"][1], arrive + norm + update)
assert busy["collective"][0] == 3
assert math.isclose(busy["collective"][1], reduce + scalars + gather)

# A backward pass of a second hides the copies of all gradients but the last one's.
[late] = hidden["schedule"]["stages"]
last = kernel(2 * 2 * 3072)
assert math.isclose(late["exposed"], stage["seconds"] - arrive + last, rel_tol=1e-6), late
assert math.isclose(late["seconds"], 1.5 + late["exposed"])

# Parameters and state all the time; then gradients, and with them their sum.
always = 2 * elements + 12 * slice_
forward, backward, apply = (phase["alive"]["device"] for phase in late["phases"])
assert forward["by_role"] == {"parameter": 2 * elements, "state": 12 * slice_}, forward
assert backward["bytes"] == always + 2 * elements + 4 * slice_, backward
assert apply["bytes"] == backward["bytes"]  # the reduction ends behind the pass
assert late["held"] == {"device": backward["bytes"], "host": 0}
