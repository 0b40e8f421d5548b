"""A tiny untrained Qwen3 as a Hugging Face folder, whose heads are as wide as
vLLM's kernels for CPUs need."""
import json
import pathlib
import random
import shutil
import struct

HIDDEN, HEADS, KV_HEADS, WIDTH, INNER, LAYERS = 64, 4, 2, 32, 128, 2


def parameters(vocab):
    yield "model.embed_tokens.weight", [vocab, HIDDEN]
    for layer in range(LAYERS):
        p = f"model.layers.{layer}."
        yield p + "input_layernorm.weight", [HIDDEN]
        yield p + "self_attn.q_proj.weight", [HEADS * WIDTH, HIDDEN]
        yield p + "self_attn.k_proj.weight", [KV_HEADS * WIDTH, HIDDEN]
        yield p + "self_attn.v_proj.weight", [KV_HEADS * WIDTH, HIDDEN]
        yield p + "self_attn.o_proj.weight", [HIDDEN, HEADS * WIDTH]
        yield p + "self_attn.q_norm.weight", [WIDTH]
        yield p + "self_attn.k_norm.weight", [WIDTH]
        yield p + "post_attention_layernorm.weight", [HIDDEN]
        yield p + "mlp.gate_proj.weight", [INNER, HIDDEN]
        yield p + "mlp.up_proj.weight", [INNER, HIDDEN]
        yield p + "mlp.down_proj.weight", [HIDDEN, INNER]
    yield "model.norm.weight", [HIDDEN]
    yield "lm_head.weight", [vocab, HIDDEN]


def write_tiny_qwen3(base, folder, seed=1):
    """Writes `folder` with the tokenizer of the folder `base`."""
    base, folder = pathlib.Path(base), pathlib.Path(folder)
    shutil.copytree(base, folder)
    old = json.loads((base / "config.json").read_text())
    config = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
              "vocab_size": old["vocab_size"], "hidden_size": HIDDEN,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "num_key_value_heads": KV_HEADS, "head_dim": WIDTH,
              "intermediate_size": INNER, "max_position_embeddings": 128,
              "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu",
              "attention_bias": False, "tie_word_embeddings": False,
              "torch_dtype": "float32", "bos_token_id": None,
              "eos_token_id": old["eos_token_id"]}
    (folder / "config.json").write_text(json.dumps(config))
    draw, header, data = random.Random(seed), {}, b""
    for name, shape in parameters(config["vocab_size"]):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [1.0] * count if len(shape) == 1 else [
            draw.gauss(0, 0.1) for _ in range(count)]
        begin, data = len(data), data + struct.pack(f"<{count}f", *values)
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + data)
