#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fine-tunes a small GPT-2 with Hugging Face Trainer, on any number of ranks.

torchrun --standalone --nproc-per-node 2 finetune_trainer.py --output out
torchrun --standalone --nproc-per-node 2 finetune_trainer.py --output out --resume

The lines with a number are those that differ from a script with transformers.Trainer.
"""

from __future__ import annotations

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments

from zero_opt.torch.trainer import Trainer  # 1: in place of transformers.Trainer


def make_data(rows: int) -> list[dict[str, torch.Tensor]]:
    """Texts that count up, from a number each."""
    return [
        {"input_ids": tokens, "labels": tokens}
        for tokens in (torch.arange(row, row + 16) % 61 for row in range(rows))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Fine-tunes a small GPT-2.")
    parser.add_argument("--output", default="out", help="the folder of checkpoints")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--zero", type=int, default=2, help="the stage of ZeRO: 0, 1 or 2")
    parser.add_argument("--resume", action="store_true", help="from the last checkpoint")
    options = parser.parse_args()

    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=2,
        n_embd=32,
        n_head=2,
        vocab_size=64,
        n_positions=16,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = GPT2LMHeadModel(config)  # or GPT2LMHeadModel.from_pretrained(FOLDER)
    arguments = TrainingArguments(
        options.output,
        max_steps=options.steps,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        learning_rate=3e-3,
        weight_decay=0.1,
        max_grad_norm=1.0,
        lr_scheduler_type="cosine",
        logging_steps=5,
        save_steps=5,
        use_cpu=True,
        report_to=[],
    )
    trainer = Trainer(  # 2: zero
        model, arguments, train_dataset=make_data(64), zero=options.zero
    )
    trainer.train(resume_from_checkpoint=options.resume or None)
    trainer.accelerator.end_training()


if __name__ == "__main__":
    main()
