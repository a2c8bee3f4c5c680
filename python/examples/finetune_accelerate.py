#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fine-tunes a small GPT-2 with Hugging Face Accelerate, on any number of ranks.

torchrun --standalone --nproc-per-node 2 finetune_accelerate.py --output out
torchrun --standalone --nproc-per-node 2 finetune_accelerate.py --output out --resume

The lines with a number are those that differ from a script with Accelerate alone.
"""

from __future__ import annotations

import argparse
import pathlib

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from transformers import GPT2Config, GPT2LMHeadModel

import zero_opt.torch as zo
import zero_opt.torch.accelerate as zo_accelerate


def main() -> None:
    parser = argparse.ArgumentParser(description="Fine-tunes a small GPT-2.")
    parser.add_argument("--output", default="out", help="the folder of the checkpoint")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--zero", type=int, default=2, help="the stage of ZeRO: 0, 1 or 2")
    parser.add_argument("--resume", action="store_true", help="from the checkpoint")
    options = parser.parse_args()

    set_seed(0)
    accelerator = Accelerator(
        cpu=True,
        gradient_accumulation_steps=2,
        # So that a resumed run shuffles as the first one.
        dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True),
    )
    config = GPT2Config(
        n_layer=2,
        n_embd=32,
        n_head=2,
        vocab_size=64,
        n_positions=16,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = GPT2LMHeadModel(config)
    optimizer = zo.AdamW(  # 1: in place of torch.optim.AdamW
        model, lr=3e-3, weight_decay=0.1, max_norm=1.0, zero=options.zero
    )
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 100)
    rows = torch.stack([torch.arange(row, row + 16) % 61 for row in range(64)])
    loader = torch.utils.data.DataLoader(rows, batch_size=4, shuffle=True)
    # 2: before accelerator.prepare of the rest
    model, optimizer = zo_accelerate.prepare(accelerator, model, optimizer)
    loader, schedule = accelerator.prepare(loader, schedule)

    checkpoint = pathlib.Path(options.output)
    begin = 0
    if options.resume:
        accelerator.load_state(checkpoint)
        begin = options.epochs // 2
    for epoch in range(begin, options.epochs):
        loader.set_epoch(epoch)
        for tokens in loader:
            with accelerator.accumulate(model):
                loss = model(input_ids=tokens, labels=tokens).loss
                accelerator.backward(loss)
                # 3: no accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        mean = accelerator.gather(loss.detach()).mean().item()
        accelerator.print(
            f"epoch {epoch}  loss {mean:.6f}  gradient norm {optimizer.grad_norm:.6f}"
        )
        if epoch + 1 == options.epochs // 2:
            accelerator.save_state(checkpoint)
    accelerator.end_training()


if __name__ == "__main__":
    main()
