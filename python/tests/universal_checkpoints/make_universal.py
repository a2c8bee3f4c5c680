# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the archives of this folder: universal checkpoints that DeepSpeed has written.

usage: torchrun --nproc-per-node 2 make_universal.py STAGE DTYPE OUT.tar.gz

It needs DeepSpeed 0.19.8 (DS_BUILD_OPS=0). Two ranks train for three steps, save, and go
on for three more. An archive has what ds_to_universal makes of the checkpoint, and the
losses of the last three steps in losses.json, a list for each rank.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import torch
import torch.distributed as dist

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from universal import compute_loss, list_groups, make_model  # noqa: E402

os.environ |= {"DS_ACCELERATOR": "cpu", "DS_BUILD_OPS": "0"}
STEPS = 3


def main(stage: str, dtype: str, out: str) -> None:
    import deepspeed  # noqa: PLC0415

    dist.init_process_group("gloo")
    box = [tempfile.mkdtemp()]
    dist.broadcast_object_list(box, src=0)
    folder = pathlib.Path(box[0])
    model = make_model(getattr(torch, dtype), seed=0)
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_clipping": 1.0,
        "communication_data_type": "fp32",
        "bf16": {"enabled": dtype == "bfloat16"},
        "zero_optimization": {
            "stage": int(stage),
            "stage3_param_persistence_threshold": 0,
        },
        "zero_allow_untested_optimizer": True,
    }
    optimizer = torch.optim.AdamW(list_groups(model), lr=1e-2)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    losses = []
    for step in range(2 * STEPS):
        if step == STEPS:
            engine.save_checkpoint(str(folder / "saved"), tag="step3")
        loss = compute_loss(engine, step, dist.get_rank())
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, losses[STEPS:])
    if dist.get_rank():
        return
    subprocess.run(
        [sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal"]
        + ["--inject_missing_state"] * (stage != "3")
        + ["--input_folder", str(folder / "saved/step3")]
        + ["--output_folder", str(folder / "universal/step3")],
        check=True,
    )
    (folder / "universal/losses.json").write_text(json.dumps(every))
    with tarfile.open(out, "w:gz") as archive:
        archive.add(folder / "universal", arcname=".")


if __name__ == "__main__":
    main(*sys.argv[1:])
