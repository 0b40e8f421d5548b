#!/usr/bin/env python3
"""Trains the model of run.sh by TRL's GRPO on the same rows, for comparison.

usage: trl_grpo.py [--model DIR] [--train FILE] [--eval FILE] [--steps N] [--lr X]
                   [--seed N] [--lora] [--out FILE]

Prints a line of JSON: seconds of training, and how many of the unseen problems are
solved greedily before and after. Batches, lengths, loss and learning rate are those
of grpo.yaml. Runs under the Python of tests/golden (`make_golden.py --python`)."""
import argparse
import json
import re
import time

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

PROMPTS, ANSWERS, NEW_TOKENS = 8, 8, 24


def read_rows(file):
    with open(file, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [{"prompt": row["messages"], "answer": row["answer"]} for row in rows]


def is_right(text, answer):
    """The rule `number`: the last number of the text is the answer."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?", text.replace(",", ""))
    return bool(numbers) and float(numbers[-1]) == float(answer)


def reward(completions, answer, **_):
    return [float(is_right(text[0]["content"], want))
            for text, want in zip(completions, answer)]


@torch.no_grad()
def solved(model, tokenizer, rows):
    right = 0
    model.eval()
    for first in range(0, len(rows), 20):
        part = rows[first:first + 20]
        inputs = tokenizer.apply_chat_template(
            [row["prompt"] for row in part], add_generation_prompt=True, padding=True,
            return_dict=True, return_tensors="pt")
        out = model.generate(**inputs, do_sample=False, max_new_tokens=NEW_TOKENS)
        texts = tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1]:],
                                       skip_special_tokens=True)
        right += sum(is_right(text, row["answer"]) for text, row in zip(texts, part))
    return right / len(rows)


def settings(args):
    return GRPOConfig(
        output_dir=args.out + ".trl", max_steps=args.steps, seed=args.seed,
        learning_rate=args.lr, lr_scheduler_type="constant_with_warmup", warmup_steps=5,
        weight_decay=0.0, adam_beta2=0.95, max_grad_norm=1.0,
        per_device_train_batch_size=PROMPTS * ANSWERS // 2, gradient_accumulation_steps=1,
        steps_per_generation=2, num_generations=ANSWERS, max_completion_length=NEW_TOKENS,
        temperature=0.7, beta=0.0, epsilon=0.2, epsilon_high=0.28, loss_type="dapo",
        use_cpu=True, bf16=False, gradient_checkpointing=False, report_to=[],
        save_strategy="no", logging_steps=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--train", default="train.jsonl")
    parser.add_argument("--eval", default="eval.jsonl")
    parser.add_argument("--steps", type=int, default=40, help="of generation; two updates each")
    parser.add_argument("--lr", type=float, default=1e-5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--out", default="trl.jsonl")
    args = parser.parse_args()
    args.steps *= 2
    tokenizer = AutoTokenizer.from_pretrained(args.model, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32)
    unseen = read_rows(args.eval)
    found = {"solved_before": solved(model, tokenizer, unseen)}
    lora = None
    if args.lora:
        from peft import LoraConfig
        lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
    trainer = GRPOTrainer(model, reward_funcs=reward, args=settings(args),
                          train_dataset=Dataset.from_list(read_rows(args.train)),
                          processing_class=tokenizer, peft_config=lora)
    begin = time.monotonic()
    trainer.train()
    found["seconds"] = round(time.monotonic() - begin)
    found["solved_after"] = solved(trainer.model, tokenizer, unseen)
    line = json.dumps(found | {"steps": args.steps // 2, "seed": args.seed, "lora": args.lora,
                               "lr": args.lr})
    print(line)
    with open(args.out, "a", encoding="utf-8") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    main()
