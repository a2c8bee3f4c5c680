# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares traces with what the runtime counted."""

import collections
import json
import pathlib
import sys

folder, report = sys.argv[1:]
counters = json.load(open(report))["counters"]
assert len(counters) == 3
for rank, counted in enumerate(counters):
    events = json.loads((pathlib.Path(folder) / f"rank-{rank}.json").read_text())
    spans = [event for event in events if event["ph"] == "X"]
    assert all(span["pid"] == rank and span["dur"] >= 0 for span in spans)
    assert all(span["args"]["status"] == 0 for span in spans)
    number = collections.Counter(span["cat"] for span in spans)
    assert number["apply"] == 4 and number["begin_backward"] == 8, number
    # quickstart has four parameters in one bucket.
    assert number["pack"] == 4 * 8, number
    reduced = number["reduce_scatter"] + number["reduce_scatter_add"]
    assert reduced == counted["reduce_scatters"] == 8, number
    assert number["all_gather"] == counted["all_gathers"] == 4
    assert number["all_reduce_scalars"] == counted["scalar_all_reduces"] == 4
    # Calls of the caller hold those of handlers, so each byte is there twice.
    of_handlers = [span for span in spans if span["tid"] != 5]
    sent = sum(span["args"].get("bytes_sent", 0) for span in of_handlers)
    assert sent == counted["bytes_sent"], (sent, counted["bytes_sent"])
    outer = [span for span in spans if span["cat"] == "apply"]
    for gather in (span for span in spans if span["cat"] == "all_gather"):
        assert gather["name"] == "all_gather b0.parameters"
        assert gather["tid"] == 1  # the stream of collectives
        end = gather["ts"] + gather["dur"]
        rate = gather["args"]["bytes_sent"] / (1000 * gather["dur"])
        assert abs(gather["args"]["gb_per_s"] - rate) < 0.001 + 0.01 * rate, gather
        assert any(one["ts"] <= gather["ts"] and end <= one["ts"] + one["dur"] + 0.002
                   for one in outer)
    names = {span["name"] for span in spans}
    assert "pack fc1.weight" in names, names
