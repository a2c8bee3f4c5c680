# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Closed forms of what zero-explain says of GPT-2 small on four ranks."""

import json
import sys

explained, machine = (json.load(open(path)) for path in sys.argv[1:])
RANKS = 4
buckets = [bucket["elements"] for bucket in explained["plan"]["buckets"]]
elements = sum(buckets)
slice_ = elements // RANKS
# Parameters in bf16; master weights and two moments in f32.
kept = 2 * elements + 12 * slice_
whole = 4 * elements
expected = {
    # Whole gradients, summed in place; everything is on all ranks.
    (0, "none"): 2 * elements + 12 * elements + whole,
    # Whole gradients, and the slice of their sum.
    (1, "none"): kept + whole + 4 * slice_,
    # Two buckets of gradients in bf16, and the slice of their sum.
    (2, "none"): kept + 4 * slice_
    + 2 * (max(buckets[0::2]) + max(buckets[1::2])),
}
for choice in explained["choices"]:
    key = choice["stage"], choice["offload"]
    if key in expected:
        found = choice["cost"]["device_bytes"]
        assert found == expected[key], (key, found, expected[key])
by_stage = {(c["stage"], c["offload"]): c["cost"] for c in explained["choices"]}
# A ring sends (D-1)/D of the bytes, twice for an all-reduce.
share = (RANKS - 1) / RANKS
# At stage 0 the sum of squares is on all ranks, and three counts are left to add up.
assert by_stage[0, "none"]["bytes_sent_at_apply"] == (2 * 4 * elements + 2 * 8 * 3) * share
assert by_stage[1, "none"]["bytes_sent_at_apply"] == (6 * elements + 2 * 8 * 4) * share
assert by_stage[2, "none"]["bytes_sent_in_backward"] == 2 * elements * share
# On the host: state, the reduced gradient, and updated parameters.
assert by_stage[1, "optimizer"]["host_bytes"] == (12 + 4 + 2) * slice_
# The gradient goes there, and the parameters come back.
assert by_stage[1, "optimizer"]["bytes_copied_at_apply"] == (4 + 2) * slice_

cost = explained["chosen"]["cost"]
assert cost["device_traffic_at_apply"] == (4 + 4 + 2 * 12 + 2) * slice_
[times] = explained["seconds"]["stages"]
link = machine["links"][0]
sent = 17 * 2 * (RANKS - 1) + 2 * (RANKS - 1)  # messages
assert abs(times["send_at_apply"] - sent * link["latency"]
           - cost["bytes_sent_at_apply"] / link["bandwidth"]) < 1e-12
assert abs(times["device_kernels"]
           - cost["device_traffic_at_apply"] / machine["device_bandwidth"]) < 1e-12
assert times["host_kernels"] == times["copy"] == 0
