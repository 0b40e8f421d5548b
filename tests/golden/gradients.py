"""family_gradients.json: what transformers' autograd says of each golden model.

Loss: (sum of log p(token t+1) + 0.1 * sum of the entropies of those
distributions) / number of predicted tokens, each sequence alone. Of every
parameter's gradient, by its name in the checkpoint: its norm, and its dot
product with cos(0.37 i), i the place in row-major order."""
import torch
from common import load, split, write_json
from models import MODELS, open_model


# where checkpoints have experts, if not as here: the MLP's name; gate, up and down
USUAL = ("mlp", ("gate_proj", "up_proj", "down_proj"))
STORED = {"mixtral": ("block_sparse_moe", ("w1", "w3", "w2"))}
HEADS = {"gpt_neox": "embed_out.weight"}


def as_stored(grads, family):
    """Experts that the module keeps in one tensor, as the checkpoint has them."""
    mlp, (gate, up, down) = STORED.get(family, USUAL)
    out = {}
    for name, grad in grads.items():
        experts = name.rsplit(".mlp.experts.", 1)[0] + f".{mlp}.experts"
        if name.endswith(".mlp.experts.gate_up_proj"):
            half = grad.shape[1] // 2
            for e in range(grad.shape[0]):
                out[f"{experts}.{e}.{gate}.weight"] = grad[e, :half]
                out[f"{experts}.{e}.{up}.weight"] = grad[e, half:]
        elif name.endswith(".mlp.experts.down_proj"):
            for e in range(grad.shape[0]):
                out[f"{experts}.{e}.{down}.weight"] = grad[e]
        elif name == "lm_head.weight":
            out[HEADS.get(family, name)] = grad
        else:
            out[name.replace(".mlp.gate.weight", f".{mlp}.gate.weight")] = grad
    return out


def loss_of(model, io):
    total, count = 0.0, 0
    for ids in split(io["tokens"], io["lengths"]):
        if len(ids) < 2:
            continue
        logp = model(input_ids=ids[None], use_cache=False).logits[0, :-1].double().log_softmax(-1)
        total = total + logp.gather(-1, ids[1:, None]).sum()
        total = total - 0.1 * (logp.exp() * logp).sum()
        count += len(ids) - 1
    return total / count


def of_model(folder, family, config):
    model = open_model(folder, config)
    loss = loss_of(model, load(folder / "io.safetensors"))
    loss.backward()
    found = {}
    grads = {n: p.grad for n, p in model.named_parameters()}
    for name, grad in as_stored(grads, family).items():
        flat = grad.double().flatten()
        wave = torch.cos(0.37 * torch.arange(flat.numel(), dtype=torch.double))
        found[name] = [float(flat.norm()), float(flat @ wave)]
    return {"loss": float(loss.detach()), "gradients": found}


def make(out):
    cases = {name: of_model(out / "models" / name, family, config)
             for name, (_, family, config) in sorted(MODELS.items()) if "num_labels" not in config}
    write_json(out / "family_gradients.json", {"cases": cases})
    print(f"  {len(cases)} models")
