# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What holds of the schedule of every step: zero-explain --json, any number of files."""

import json
import sys

for path in sys.argv[1:]:
    explained = json.load(open(path))
    plan = explained["plan"]
    for stage, planned in zip(
        explained["schedule"]["stages"], plan.get("stages", [plan]), strict=True
    ):
        busy = [s["busy"] for s in stage["streams"]]
        assert max(busy) <= stage["seconds"] * (1 + 1e-9) <= sum(busy) * (1 + 2e-9), path
        assert 0 <= stage["exposed"] <= stage["seconds"], path
        held = planned["total_bytes_per_rank"]["one_backward"]
        assert stage["held"] == held, (path, stage["held"], held)
        for phase in stage["phases"]:
            assert phase["start"] <= phase["finish"] <= stage["seconds"], (path, phase)
            for space, alive in phase["alive"].items():
                assert alive["bytes"] <= held[space], (path, phase)
                assert alive["bytes"] == sum(alive["by_role"].values()), (path, phase)
