# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""failing_table.py PEERS_FOLDER FOLDER: the table, where the first section fails and the
process ends in the third."""

import argparse
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
    return argparse.Namespace(sizes=[1, 2], elements=3, device=1e-3, host=1e-3)


peers.time_step = time_step
sys.argv = ["peers.py", "--device=host", sys.argv[2]]
sys.exit(peers.main())
