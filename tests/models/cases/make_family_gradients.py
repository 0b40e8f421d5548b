#!/usr/bin/env python3
"""Writes family_gradients.json: gradients of transformers for each golden model
(pip install transformers torch safetensors).

usage: make_family_gradients.py GOLDEN_MODELS_FOLDER [OUT]
Loss: (sum of log p(token t+1) + 0.1 * sum of the entropies of those
distributions) / number of predicted tokens, each sequence alone. Of every
parameter's gradient, by its name in the checkpoint: its norm, and its dot
product with cos(0.37 i), i the place in row-major order.
"""
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file

sys.path.append(str(pathlib.Path(__file__).parents[2] / "golden"))
from gradients import as_stored  # noqa: E402


def one(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager")
    model.eval()  # no dropout
    io = load_file(folder / "io.safetensors")
    tokens, cu = io["tokens"], io["cu_seqlens"].tolist()
    total, count = 0.0, 0
    for begin, end in zip(cu, cu[1:]):
        if end - begin < 2:
            continue
        ids = tokens[begin:end][None]
        logp = model(ids).logits[0, :-1].double().log_softmax(-1)
        total = total + logp.gather(-1, ids[0, 1:, None]).sum()
        total = total + 0.1 * -(logp.exp() * logp).sum()
        count += end - begin - 1
    loss = total / count
    loss.backward()
    out = {"loss": float(loss.detach()), "gradients": {}}
    grads = {n: p.grad for n, p in model.named_parameters()}
    for name, grad in as_stored(grads).items():
        flat = grad.double().flatten()
        probe = torch.cos(0.37 * torch.arange(flat.numel(), dtype=torch.double))
        out["gradients"][name] = [float(flat.norm()), float(flat @ probe)]
    return out


def main():
    models = pathlib.Path(sys.argv[1])
    out = sys.argv[2] if len(sys.argv) > 2 else "family_gradients.json"
    cases = {}
    for folder in sorted(models.iterdir()):
        config = json.loads((folder / "config.json").read_text())
        if config["architectures"][0].endswith("ForSequenceClassification"):
            continue
        cases[folder.name] = one(folder)
        print(folder.name, cases[folder.name]["loss"], file=sys.stderr)
    with open(out, "w") as file:
        json.dump({"made_with": {"transformers": transformers.__version__,
                                 "torch": torch.__version__},
                   "cases": cases}, file, indent=1)
        file.write("\n")


main()
