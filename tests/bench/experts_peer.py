#!/usr/bin/env python3
"""Training and generation of the card `experts` by transformers, beside
`troupe-bench train --card experts` and `troupe-bench generate --card experts`.

usage: experts_peer.py [--threads N] [--runs N] [--experts eager|grouped_mm|batched_mm]

A Qwen3-MoE of the card's shape with random weights; training is forward, cross entropy
of every token, backward and fused AdamW on a packed block; decoding is a loop of one
token per sequence with a cache, as (t(N) - t(1)) / (N - 1) per step. Prints a line of
JSON. Runs under a Python with torch and transformers (make_golden.py --python)."""
import argparse
import json
import pathlib
import statistics
import time

import torch
from transformers import DynamicCache, Qwen3MoeConfig, Qwen3MoeForCausalLM

CARD = json.loads((pathlib.Path(__file__).parent / "cards.json").read_text())["cards"]["experts"]


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def model_of(experts):
    torch.manual_seed(1)
    config = Qwen3MoeConfig(**CARD["model"], **CARD["experts"], norm_topk_prob=True,
                            rms_norm_eps=1e-5, rope_theta=10000.0, head_dim=64,
                            output_router_logits=False)
    model = Qwen3MoeForCausalLM._from_config(config, attn_implementation="sdpa")
    model.set_experts_implementation(experts)
    return model


def train(model, runs):
    sizes = CARD["train"]
    ids = torch.randint(3, CARD["model"]["vocab_size"], (sizes["batch"], sizes["seq_len"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=sizes["lr"], fused=True)

    def step():
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    model.train()
    step()
    return ids.numel() / statistics.median(seconds(step) for _ in range(runs))


@torch.inference_mode()
def decode(model, batch, runs):
    sizes = CARD["generate"]
    ids = torch.randint(3, CARD["model"]["vocab_size"], (batch, sizes["prompt_len"]))

    def generate(count):
        cache, x = DynamicCache(config=model.config), ids
        for _ in range(count):
            logits = model(input_ids=x, past_key_values=cache, use_cache=True,
                           logits_to_keep=1).logits[:, -1]
            x = torch.multinomial(torch.softmax(logits, -1), 1)

    model.eval()
    generate(2)
    count = sizes["new_tokens"]
    first = min(seconds(lambda: generate(1)) for _ in range(runs))
    whole = statistics.median(seconds(lambda: generate(count)) for _ in range(runs))
    return batch * (count - 1) / (whole - first)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--experts", default="eager")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = model_of(args.experts)
    found = {"experts": args.experts, "train_tok_s": round(train(model, args.runs), 1)}
    for batch in CARD["generate"]["batch_sizes"]:
        found[f"decode_tok_s_{batch}"] = round(decode(model, batch, args.runs), 1)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
