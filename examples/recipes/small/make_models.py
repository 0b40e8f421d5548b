"""make_models.py FOLDER: two models for recipes of CPU size, from FOLDER/base, which
tiny_data has written there: FOLDER/scorer, a reward model whose scores differ, and
FOLDER/experts, a mixture of 8 experts of which a token takes 2. Both are random."""
import json
import pathlib
import random
import shutil
import struct
import sys

NUM_EXPERTS, EXPERT_WIDTH = 8, 32
draw = random.Random(1)
folder = pathlib.Path(sys.argv[1])
config = json.loads((folder / "base/config.json").read_text())
width = config["hidden_size"]


def read_tensors(file):
    """{name: (shape, bytes)} of a safetensors file of 32-bit numbers."""
    stored = file.read_bytes()
    end = 8 + struct.unpack("<Q", stored[:8])[0]
    header = json.loads(stored[8:end])
    header.pop("__metadata__", None)
    return {name: (tensor["shape"],
                   stored[end:][slice(*tensor["data_offsets"])])
            for name, tensor in header.items()}


def write_model(name, changes, tensors):
    """Writes a copy of base with these settings and these tensors."""
    header, data = {}, bytearray()
    for key, (shape, values) in tensors.items():
        header[key] = {"dtype": "F32", "shape": shape,
                       "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    shutil.copytree(folder / "base", folder / name, dirs_exist_ok=True)
    (folder / name / "config.json").write_text(
        json.dumps(config | changes, indent=2) + "\n")
    (folder / name / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + data)


def normal(deviation, *shape):
    count = 1
    for size in shape:
        count *= size
    return list(shape), struct.pack(
        f"<{count}f", *(draw.gauss(0, deviation) for _ in range(count)))


base = read_tensors(folder / "base/model.safetensors")

scorer = {name: tensor for name, tensor in base.items() if name != "lm_head.weight"}
scorer["score.weight"] = normal(0.3, 1, width)
write_model("scorer", {"architectures": ["LlamaForSequenceClassification"],
                       "num_labels": 1}, scorer)

experts = {name: tensor for name, tensor in base.items() if ".mlp." not in name}
for layer in range(config["num_hidden_layers"]):
    at = f"model.layers.{layer}"
    ones = struct.pack(f"<{config['head_dim']}f", *[1.0] * config["head_dim"])
    for norm in ("q_norm", "k_norm"):
        experts[f"{at}.self_attn.{norm}.weight"] = ([config["head_dim"]], ones)
    experts[f"{at}.mlp.gate.weight"] = normal(0.3, NUM_EXPERTS, width)
    for expert in range(NUM_EXPERTS):
        for matrix, shape in (("gate", (EXPERT_WIDTH, width)),
                              ("up", (EXPERT_WIDTH, width)),
                              ("down", (width, EXPERT_WIDTH))):
            experts[f"{at}.mlp.experts.{expert}.{matrix}_proj.weight"] = normal(
                0.02, *shape)
write_model("experts", {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
    "num_experts": NUM_EXPERTS, "num_experts_per_tok": 2,
    "moe_intermediate_size": EXPERT_WIDTH, "norm_topk_prob": True,
    "decoder_sparse_step": 1, "mlp_only_layers": []}, experts)
