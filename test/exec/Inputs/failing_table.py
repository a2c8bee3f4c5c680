# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""failing_table.py PEERS_FOLDER FOLDER: the table, where the first section fails and the
process ends in the third."""

import os
import sys

sys.path.insert(0, sys.argv[1])
import peers  # noqa: E402


def time_step(clock, folder, name, device, gpu):
    del clock, folder, device, gpu
    if name == "bench/flat":
        raise RuntimeError("the GPU is gone")
    if name == "bench/offload":
        os._exit(9)
    return peers.Seen([1, 2], 1e-3, 1e-3, (None, None), None)


peers.time_step = time_step
sys.argv = ["peers.py", "--device=host", sys.argv[2]]
sys.exit(peers.main())
