#!/usr/bin/env python3
"""Writes padding_rows.json: three AdamW steps of transformers on models whose
pad token is also an ordinary token (pip install transformers torch).

usage: make_padding_rows.py [OUT]
transformers builds the embedding with `padding_idx = pad_token_id`, so a look-up
gives that row no gradient. Weights are formulas (`start`), so that the test makes
the same ones. Loss: sum of -log p over answer tokens / their number. AdamW:
decay p *= 1 - lr * weight_decay for matrices, gradients clipped to norm 1.
"""
import json
import sys

import torch
import transformers

PAD = 3
SIZES = {"vocab_size": 26, "hidden_size": 16, "intermediate_size": 24,
         "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 4, "max_position_embeddings": 32,
         "rms_norm_eps": 1e-5}
CASES = {
    "llama_tied": SIZES | {"model_type": "llama", "tie_word_embeddings": True,
                           "pad_token_id": PAD, "eos_token_id": PAD},
    "llama_untied": SIZES | {"model_type": "llama",
                             "tie_word_embeddings": False,
                             "pad_token_id": PAD, "eos_token_id": PAD},
    # no key: Gemma's own default is 0
    "gemma_default": SIZES | {"model_type": "gemma",
                              "hidden_act": "gelu_pytorch_tanh",
                              "eos_token_id": PAD},
    # -1 counts from the end of the embedding
    "qwen2_minus_one": SIZES | {"model_type": "qwen2",
                                "tie_word_embeddings": True,
                                "pad_token_id": -1, "eos_token_id": PAD},
}
CLASSES = {"llama": "LlamaForCausalLM", "gemma": "GemmaForCausalLM",
           "qwen2": "Qwen2ForCausalLM"}
# Two answers to each of two prompts; the ends of turns inside, and at the end.
PROMPTS = [[0, 7, 3, 9, 25], [3, 11, 3, 12]]
ANSWERS = [[[5, 3], [8, 25, 0, 3, 6, 3]], [[3, 3], [25, 14, 3]]]
LR, DECAY, BETAS, STEPS = 1e-2, 0.05, (0.9, 0.95), 3


def start(model):
    """Sines by the parameter's place in the sorted names; norms about 1."""
    for k, name in enumerate(sorted(dict(model.named_parameters()))):
        p = model.get_parameter(name)
        i = torch.arange(p.numel(), dtype=torch.double)
        wave = 0.3 * torch.sin(1.7 * (i + 1) + 0.9 * k)
        one = 1.0 if "norm" in name else 0.0
        with torch.no_grad():
            p.copy_((one + wave).reshape(p.shape).float())


def one(config):
    config = dict(config)
    model_type = config.pop("model_type")
    kind = transformers.AutoConfig.for_model(model_type, **config)
    model = transformers.AutoModelForCausalLM.from_config(
        kind, attn_implementation="eager").float()
    start(model)
    model = model.double()
    names = dict(model.named_parameters())
    matrices = [p for p in names.values() if p.dim() >= 2]
    vectors = [p for p in names.values() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": DECAY},
         {"params": vectors, "weight_decay": 0.0}], lr=LR, betas=BETAS, eps=1e-8)
    table = model.get_input_embeddings().weight
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        total, count = 0.0, 0
        for prompt, answers in zip(PROMPTS, ANSWERS):
            for answer in answers:
                ids = torch.tensor([prompt + answer])
                logp = model(ids).logits[0, :-1].log_softmax(-1)
                own = logp.gather(-1, ids[0, 1:, None])[len(prompt) - 1:]
                total, count = total - own.sum(), count + len(answer)
        (total / count).backward()
        losses.append(float(total / count))
        if step == 0:
            gradient = table.grad.flatten().tolist()
        torch.nn.utils.clip_grad_norm_(names.values(), 1.0)
        optimizer.step()
    return {"config": published(model_type, config), "loss": losses,
            "embedding_gradient": rounded(gradient),
            "embedding": rounded(table.flatten().tolist()),
            "norms": {n: float(p.norm()) for n, p in names.items()}}


def published(model_type, config):
    return {"architectures": [CLASSES[model_type]],
            "model_type": model_type} | config


def rounded(numbers):
    return [round(x, 7) for x in numbers]


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else "padding_rows.json"
    cases = {name: one(config) for name, config in CASES.items()}
    with open(out, "w") as file:
        json.dump({"made_with": {"transformers": transformers.__version__,
                                 "torch": torch.__version__},
                   "prompts": PROMPTS, "answers": ANSWERS,
                   "optimizer": {"lr": LR, "weight_decay": DECAY,
                                 "betas": BETAS, "steps": STEPS},
                   "cases": cases}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
