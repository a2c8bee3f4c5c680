# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What holds of the schedule of every step: zero-explain --json, any number of files."""

import json
import sys

for path in sys.argv[1:]:
    explained = json.load(open(path))
    plan = explained["plan"]
    for stage, planned, seconds in zip(
        explained["schedule"]["stages"],
        plan.get("stages", [plan]),
        explained["seconds"]["stages"],
        strict=True,
    ):
        busy = [s["busy"] for s in stage["streams"]]
        by_name = {s["stream"]: s["busy"] for s in stage["streams"]}
        # The table adds up what the schedule runs.
        sends = seconds["send_in_backward"] + seconds["send_at_apply"]
        copies = sum(by_name.get(name, 0) for name in ("to_host", "to_device"))
        assert abs(by_name.get("collective", 0) - sends) <= 1e-9 * sends + 1e-15, path
        assert abs(copies - seconds["copy"]) <= 1e-9 * copies + 1e-15, path
        assert max(busy) <= stage["seconds"] * (1 + 1e-9) <= sum(busy) * (1 + 2e-9), path
        assert 0 <= stage["exposed"] <= stage["seconds"], path
        held = planned["total_bytes_per_rank"]["one_backward"]
        assert stage["held"] == held, (path, stage["held"], held)
        for phase in stage["phases"]:
            assert phase["start"] <= phase["finish"] <= stage["seconds"], (path, phase)
            for space, alive in phase["alive"].items():
                assert alive["bytes"] <= held[space], (path, phase)
                assert alive["bytes"] == sum(alive["by_role"].values()), (path, phase)
