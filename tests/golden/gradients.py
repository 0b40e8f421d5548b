"""family_gradients.json: what transformers' autograd says of each golden model.

Loss: (sum of log p(token t+1) + 0.1 * sum of the entropies of those
distributions) / number of predicted tokens, each sequence alone. Of every
parameter's gradient, by its name in the checkpoint: its norm, and its dot
product with cos(0.37 i), i the place in row-major order."""
import torch
from common import load, split, write_json
from models import MODELS, open_model


def as_stored(grads):
    """Experts that the module keeps in one tensor, as the checkpoint has them."""
    out = {}
    for name, grad in grads.items():
        experts = name.rsplit(".mlp.experts.", 1)[0] + ".block_sparse_moe.experts"
        if name.endswith(".mlp.experts.gate_up_proj"):
            half = grad.shape[1] // 2
            for e in range(grad.shape[0]):
                out[f"{experts}.{e}.w1.weight"] = grad[e, :half]
                out[f"{experts}.{e}.w3.weight"] = grad[e, half:]
        elif name.endswith(".mlp.experts.down_proj"):
            for e in range(grad.shape[0]):
                out[f"{experts}.{e}.w2.weight"] = grad[e]
        else:
            out[name.replace(".mlp.gate.weight", ".block_sparse_moe.gate.weight")] = grad
    return out


def of_model(folder, config):
    model = open_model(folder, config)
    io = load(folder / "io.safetensors")
    total, count = 0.0, 0
    for ids in split(io["tokens"], io["lengths"]):
        if len(ids) < 2:
            continue
        logp = model(input_ids=ids[None], use_cache=False).logits[0, :-1].double().log_softmax(-1)
        total = total + logp.gather(-1, ids[1:, None]).sum()
        total = total - 0.1 * (logp.exp() * logp).sum()
        count += len(ids) - 1
    loss = total / count
    loss.backward()
    found = {}
    for name, grad in as_stored({n: p.grad for n, p in model.named_parameters()}).items():
        flat = grad.double().flatten()
        wave = torch.cos(0.37 * torch.arange(flat.numel(), dtype=torch.double))
        found[name] = [float(flat.norm()), float(flat @ wave)]
    return {"loss": float(loss.detach()), "gradients": found}


def make(out):
    cases = {name: of_model(out / "models" / name, config)
             for name, (_, _, config) in sorted(MODELS.items()) if "num_labels" not in config}
    write_json(out / "family_gradients.json", {"cases": cases})
    print(f"  {len(cases)} models")
