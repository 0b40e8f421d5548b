"""lora.json: what PEFT says of golden models with adapters.

Adapters of rank 4, alpha 8 on every linear module of the layers; element i of the
k-th of them (A and B of each module, layer by layer) is 0.1 cos(0.37 i + 0.5 k), so
that nothing is stored. The loss is that of gradients.py. Of each adapter, by its
number: the norm of its gradient and the dot product with cos(0.37 i), then the same
of itself after one step of AdamW; and a greedy continuation of the merged model before
that step."""
import copy
import json

import torch
from common import generator, ints, load
from gradients import loss_of
from models import MODELS, open_model
from peft import LoraConfig, get_peft_model
from training import ADAMW, adamw

RANK, ALPHA = 4, 8
FAMILIES = ["gemma3", "granite", "llama_gqa", "mistral_window", "mixtral", "qwen2", "qwen3", "smollm3"]
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
NEW_TOKENS, GAP = 12, 1e-3
STEP = ADAMW | {"lr": 1e-2}


def in_order(model, targets):
    """A and B of each adapted module, layer by layer."""
    named = dict(model.named_parameters())
    layers = model.config.num_hidden_layers
    return [named[name] for layer in range(layers) for target in targets
            for which in ("A", "B") for name in named
            if f".layers.{layer}." in name and f".{target}.lora_{which}.default." in name]


def fill_adapters(adapters):
    with torch.no_grad():
        for k, p in enumerate(adapters):
            i = torch.arange(p.numel(), dtype=torch.double)
            p.copy_((0.1 * torch.cos(0.37 * i + 0.5 * k)).to(p.dtype).view_as(p))


def measured(tensors):
    """[norm, dot product with cos(0.37 i)] of each."""
    rows = []
    for t in tensors:
        flat = t.detach().double().flatten()
        wave = torch.cos(0.37 * torch.arange(flat.numel(), dtype=torch.double))
        rows.append([float(f"{float(x):.6g}") for x in (flat.norm(), flat @ wave)])
    return rows


@torch.no_grad()
def continued(model, prompt):
    ids, gaps = prompt, []
    for _ in range(NEW_TOKENS):
        best = model(input_ids=ids[None], use_cache=False).logits[0, -1].topk(2)
        gaps.append(float(best.values[0] - best.values[1]))
        ids = torch.cat([ids, best.indices[:1]])
    return ids[len(prompt):].tolist(), min(gaps)


def greedy(name, model, vocab):
    for attempt in range(300):
        prompt = ints(0, vocab, 5, generator(name, "lora", attempt))
        tokens, gap = continued(model, prompt)
        if gap > GAP:
            return {"prompt": prompt.tolist(), "tokens": tokens}
    raise SystemExit(f"{name}: no robust prompt")


def of_model(folder, name, family, config):
    experts = name == "mixtral"
    targets = TARGETS[:4] if experts else TARGETS
    model = get_peft_model(open_model(folder, config), LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules=targets, lora_dropout=0.0, bias="none",
        task_type="CAUSAL_LM"))
    adapters = in_order(model, targets)
    assert len(adapters) == sum(p.requires_grad for p in model.parameters())
    fill_adapters(adapters)
    merged = copy.deepcopy(model).merge_and_unload()
    continuation = greedy(name, merged, config["vocab_size"])
    optimizer, _ = adamw(model, STEP, 1)
    loss = loss_of(model, load(folder / "io.safetensors"))
    loss.backward()
    found = {"loss": float(loss.detach()), "gradients": measured(p.grad for p in adapters)}
    torch.nn.utils.clip_grad_norm_(adapters, STEP["clip"])
    optimizer.step()
    found["after"] = measured(adapters)
    return found | {"greedy": continuation}


def make(out):
    cases = {name: of_model(out / "models" / name, name, MODELS[name][1], MODELS[name][2])
             for name in FAMILIES}
    text = json.dumps({"rank": RANK, "alpha": ALPHA, "step": STEP, "cases": cases},
                      separators=(",", ":"))
    (out / "lora.json").write_text(text + "\n")
