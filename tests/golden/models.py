"""models/: tiny random models of every family with transformers' numbers.

A folder as save_pretrained writes it, config_published.json (the spelling of
older checkpoints), io.safetensors (each sequence computed alone) and, for
language models, generation.safetensors (greedy continuations)."""
import os

import torch
from common import (cu, describe, difference, fill, fresh, generator, ints, normal, read_json,
                    save, short, split, store, write_json)
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

NEW_TOKENS = 24
SMALLEST_GAP = 1e-3  # of the two best logits, so that rounding changes no token
ROUTER_GAP = 1e-4
TOLERANCE = {"logits": 1e-4, "logprobs": 1e-4, "entropy": 1e-4, "hidden_0": 1e-5,
             "hidden_1": 1e-4, "values": 1e-4, "scores": 1e-4, "router_logits_0": 1e-4}
LENGTHS = [1, 2, 7, 13, 30, 5]
PROMPTS = [1, 2, 3, 5, 7, 11, 16, 24]

SIZES = {"vocab_size": 128, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
         "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False}
GEMMA = {"hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": True,
         "rms_norm_eps": 1e-6}
SMALL = {"vocab_size": 64, "intermediate_size": 40}
SCORE = {"num_labels": 1, "pad_token_id": 0}
SMALLEST = {"vocab_size": 48, "hidden_size": 16, "intermediate_size": 24,
            "num_attention_heads": 2, "num_key_value_heads": 1, "pad_token_id": 0,
            "bos_token_id": 1, "eos_token_id": 2}

MODELS = {
    "llama_gqa": ("grouped-query attention, a head of its own, 257 tokens (no multiple of 4)",
                  "llama", SIZES | {"vocab_size": 257, "num_hidden_layers": 3}),
    "llama_tied_sharded": ("tied embeddings, one key-value head, two files with an index",
                           "llama", SIZES | {"num_key_value_heads": 1, "rope_theta": 5e5,
                                             "tie_word_embeddings": True, "rms_norm_eps": 1e-6}),
    "llama_rope_llama3": ("llama3 rope scaling; all three bands of frequencies occur", "llama",
                          SIZES | SMALL | {"num_attention_heads": 2,
                                   "num_key_value_heads": 1, "head_dim": 32, "rope_theta": 1000.0,
                                   "tie_word_embeddings": True,
                                   "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
                                                    "low_freq_factor": 1.0,
                                                    "high_freq_factor": 4.0,
                                                    "original_max_position_embeddings": 24}}),
    "llama_bf16_weights": ("stored as bfloat16, computed in float32", "llama",
                           SIZES | {"num_key_value_heads": 4, "vocab_size": 144}),
    "llama_linear_biased": ("linear rope scaling, biases on every product, head of its own",
                            "llama", SIZES | SMALLEST | {"attention_bias": True, "mlp_bias": True,
                                                         "rope_scaling": {"rope_type": "linear",
                                                                          "factor": 2.5}}),
    "qwen3_windows": ("a window of 8 from the second layer on", "qwen3",
                      SIZES | SMALLEST | {"head_dim": 8, "use_sliding_window": True,
                                          "sliding_window": 8, "max_window_layers": 1}),
    "qwen2": ("biases on queries, keys and values; tied embeddings", "qwen2",
              SIZES | SMALL | {"rope_theta": 1e6, "rms_norm_eps": 1e-6,
                       "tie_word_embeddings": True}),
    "qwen3": ("norms of queries and keys per head; head_dim is not hidden / heads", "qwen3",
              SIZES | SMALLEST | {"head_dim": 16, "rope_theta": 1e6,
                                  "rms_norm_eps": 1e-6}),
    "mistral_window": ("a sliding window of 8", "mistral",
                       SIZES | SMALLEST | {"sliding_window": 8}),
    "ministral": ("a window of 8 in the second layer alone", "ministral",
                  SIZES | SMALLEST | {"head_dim": 8, "sliding_window": 8,
                                      "layer_types": ["full_attention", "sliding_attention"]}),
    "gemma": ("GeGLU, norms with 1 + w, scaled embeddings, head_dim 24", "gemma",
              SIZES | SMALLEST | GEMMA | {"head_dim": 24}),
    "gemma2": ("four norms per layer, soft caps, windows (8) and full layers alternate",
               "gemma2", SIZES | GEMMA | SMALL | {"head_dim": 16, "sliding_window": 8,
                                                  "query_pre_attn_scalar": 20,
                                                  "attn_logit_softcapping": 5.0,
                                                  "final_logit_softcapping": 6.0}),
    "gpt2": ("learned positions, LayerNorm with bias, Conv1D weights, tied head", "gpt2",
             {"vocab_size": 67, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 80,
              "bos_token_id": 1, "eos_token_id": 2}),
    "mixtral": ("4 experts, 2 per token, weights renormalised over the two", "mixtral",
                SIZES | SMALLEST | {"vocab_size": 65, "num_local_experts": 4,
                                    "num_experts_per_tok": 2, "sliding_window": None}),
    "qwen3_moe": ("4 experts, 2 per token, weighted by a softmax over all four", "qwen3_moe",
                  SIZES | SMALLEST | {"head_dim": 8, "moe_intermediate_size": 12,
                                      "num_experts": 4, "num_experts_per_tok": 2,
                                      "norm_topk_prob": False, "decoder_sparse_step": 1,
                                      "mlp_only_layers": []}),
    "olmoe": ("5 experts, 2 per token; norms of queries and keys over all heads", "olmoe",
              SIZES | SMALLEST | {"intermediate_size": 8, "num_experts": 5,
                                  "num_experts_per_tok": 2, "num_key_value_heads": 2}),
    "glm4_moe": ("a dense layer first; then 8 experts in 4 groups, scored by sigmoids, "
                 "beside an MLP", "glm4_moe",
                 SIZES | SMALLEST | {"head_dim": 16, "moe_intermediate_size": 8,
                                     "n_routed_experts": 8, "num_experts_per_tok": 3,
                                     "n_shared_experts": 2, "n_group": 4, "topk_group": 2,
                                     "routed_scaling_factor": 1.5, "use_qk_norm": True,
                                     "attention_bias": True, "first_k_dense_replace": 1}),
    "phi3": ("joined tensors, a window of 8", "phi3",
             SIZES | SMALLEST | {"sliding_window": 8}),
    "phi4_longrope": ("half of each head is rotated, longrope below its original positions",
                      "phi3",
                      SIZES | SMALLEST | {"hidden_size": 32, "num_key_value_heads": 2,
                                          "original_max_position_embeddings": 64,
                                          "rope_parameters": {
                                              "rope_type": "longrope", "rope_theta": 10000.0,
                                              "partial_rotary_factor": 0.5,
                                              "original_max_position_embeddings": 64,
                                              "short_factor": [1.0, 1.1, 1.3, 1.6],
                                              "long_factor": [1.0, 2.0, 4.0, 8.0]}}),
    "smollm3": ("the second of three layers rotates nothing", "smollm3",
                SIZES | SMALLEST | {"num_hidden_layers": 3, "no_rope_layers": [1, 0, 1],
                                    "tie_word_embeddings": True}),
    "granite": ("factors of embedding, scores, branches and logits", "granite",
                SIZES | SMALLEST | {"embedding_multiplier": 3.0, "attention_multiplier": 0.2,
                                    "residual_multiplier": 0.6, "logits_scaling": 2.0}),
    "olmo2": ("norms of outputs alone, of queries and keys over all heads", "olmo2",
              SIZES | SMALLEST | {"head_dim": 8, "num_attention_heads": 4,
                                  "num_key_value_heads": 2}),
    "olmo3": ("a window of 8 in the first layer, yarn in the second", "olmo3",
              SIZES | SMALLEST | {"head_dim": 8, "sliding_window": 8,
                                  "layer_types": ["sliding_attention", "full_attention"],
                                  "rope_parameters": {
                                      "sliding_attention": {"rope_type": "default",
                                                            "rope_theta": 500000.0},
                                      "full_attention": {
                                          "rope_type": "yarn", "rope_theta": 500000.0,
                                          "factor": 4.0, "attention_factor": 1.2,
                                          "original_max_position_embeddings": 64}}}),
    "gpt_neox": ("attention and MLP side by side, a quarter of each head rotates", "gpt_neox",
                 {"vocab_size": 48, "hidden_size": 32, "intermediate_size": 48,
                  "num_hidden_layers": 2, "num_attention_heads": 2, "rotary_pct": 0.25,
                  "max_position_embeddings": 256, "tie_word_embeddings": False,
                  "bos_token_id": 1, "eos_token_id": 2}),
    "glm": ("neighbouring dimensions of half of each head rotate; gate and up joined", "glm",
            SIZES | SMALLEST | {"head_dim": 8, "num_attention_heads": 4,
                                "num_key_value_heads": 2}),
    "glm4": ("GLM with four norms per layer", "glm4", SIZES | SMALLEST | {"head_dim": 16}),
    "gemma3": ("norms of queries and keys, two bases of rotations, one of them scaled",
               "gemma3_text",
               SIZES | GEMMA | SMALLEST | {
                   "head_dim": 8, "sliding_window": 8, "query_pre_attn_scalar": 12,
                   "layer_types": ["sliding_attention", "full_attention"],
                   "rope_parameters": {
                       "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
                       "full_attention": {"rope_type": "linear", "factor": 4.0,
                                          "rope_theta": 5000.0}}}),
    "qwen2_yarn": ("yarn: kept, interpolated and divided frequencies occur", "qwen2",
                   SIZES | SMALLEST | {"hidden_size": 32, "rope_theta": 1000.0,
                                       "tie_word_embeddings": True,
                                       "rope_scaling": {
                                           "rope_type": "yarn", "factor": 4.0,
                                           "original_max_position_embeddings": 64}}),
    "llama_score": ("a scalar head: a value per token, the score is that of the last", "llama",
                    SIZES | SCORE | {"vocab_size": 131}),
    "qwen2_score": ("a scalar head on Qwen2", "qwen2",
                    SIZES | SCORE | {"rope_theta": 1e6, "rms_norm_eps": 1e-6}),
}


def kind_of(config):
    return AutoModelForSequenceClassification if "num_labels" in config else AutoModelForCausalLM


def num_experts(config):
    return (config.get("num_local_experts") or config.get("num_experts")
            or config.get("n_routed_experts"))


def open_model(folder, config, dtype=torch.float32, attention="eager"):
    extra = {"experts_implementation": "eager"} if num_experts(config) else {}
    return kind_of(config).from_pretrained(folder, attn_implementation=attention, dtype=dtype,
                                           **extra).eval()


@torch.no_grad()
def numbers_of(model, ids, scalar):
    ids = ids[None]
    if scalar:
        out = model.base_model(input_ids=ids, output_hidden_states=True, use_cache=False)
        return {"hidden_0": out.hidden_states[0][0], "hidden_1": out.hidden_states[1][0],
                "values": model.score(out.last_hidden_state)[0, :, 0],
                "scores": model(input_ids=ids, use_cache=False).logits[0]}
    experts = num_experts(model.config.to_dict())
    out = model(input_ids=ids, output_hidden_states=True, use_cache=False,
                **({"output_router_logits": True} if experts else {}))
    logp = torch.log_softmax(out.logits[0], -1)
    found = {"logits": out.logits[0], "entropy": -(logp.exp() * logp).sum(-1),
             "logprobs": logp[:-1].gather(-1, ids[0, 1:, None])[:, 0],
             "hidden_0": out.hidden_states[0][0], "hidden_1": out.hidden_states[1][0]}
    if experts:
        routers = [r.reshape(ids.shape[1], -1) for r in out.router_logits]
        found["router_logits_0"] = routers[0]
        gates = [m for m in model.modules() if type(m).__name__.endswith("Router")]
        found["router_gaps"] = torch.stack(
            [router_gap(logits, gate) for logits, gate in zip(routers, gates)], -1)
    return found


def numbers(model, tokens, scalar):
    parts = [numbers_of(model, ids, scalar) for ids in split(tokens, LENGTHS)]
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def gap_of_best(values, chosen):
    """Between the last of the chosen ones and the first that is not."""
    values = values.sort(-1, descending=True).values
    return values[:, chosen - 1] - values[:, chosen]


def router_gap(logits, gate):
    """How clearly a router chooses groups of experts and experts, per token."""
    if not hasattr(gate, "e_score_correction_bias"):
        return gap_of_best(logits.softmax(-1), gate.top_k)
    scores = logits.sigmoid() + gate.e_score_correction_bias
    groups = scores.view(len(scores), gate.num_group, -1)
    best = groups.topk(2, -1).values.sum(-1)
    lost = best < best.topk(gate.topk_group, -1).values[:, -1:]
    gap = gap_of_best(groups.masked_fill(lost[..., None], -1e9).flatten(1), gate.top_k)
    return torch.minimum(gap, gap_of_best(best, gate.topk_group))


def robust_numbers(name, model, config, scalar):
    for attempt in range(200):
        tokens = ints(int(scalar), config["vocab_size"], sum(LENGTHS),
                      generator(name, "tokens", attempt))
        found = numbers(model, tokens, scalar)
        gaps = found.pop("router_gaps", None)
        if gaps is None or float(gaps.min()) > ROUTER_GAP:
            return tokens, found
    raise SystemExit(f"{name}: no tokens that are routed robustly")


@torch.no_grad()
def greedy(model, prompt):
    """A greedy continuation without a cache, with the gap of the two best logits."""
    ids, gaps, logprobs = prompt, [], []
    for _ in range(NEW_TOKENS):
        logits = model(input_ids=ids[None], use_cache=False).logits[0, -1]
        best = logits.topk(2).values
        gaps.append(best[0] - best[1])
        logprobs.append(torch.log_softmax(logits, -1).max())
        ids = torch.cat([ids, logits.argmax()[None]])
    return ids[len(prompt):], torch.stack(logprobs), torch.stack(gaps)


@torch.no_grad()
def generated(model, prompt, eos=None):
    """The same by generate() with its cache."""
    out = model.generate(prompt[None], attention_mask=torch.ones_like(prompt[None]),
                         do_sample=False, max_new_tokens=NEW_TOKENS, eos_token_id=eos,
                         pad_token_id=0, bos_token_id=None, use_cache=True)
    return out[0, len(prompt):]


def generation(name, model, vocab):
    prompts, rows = [], []
    for length in PROMPTS:
        for attempt in range(300):
            prompt = ints(0, vocab, length, generator(name, "prompt", length, attempt))
            row = greedy(model, prompt)
            if float(row[2].min()) > SMALLEST_GAP:
                break
        else:
            raise SystemExit(f"{name}: no robust prompt of {length} tokens")
        assert torch.equal(row[0], generated(model, prompt)), name
        prompts.append(prompt)
        rows.append(row)
    new = torch.stack([row[0] for row in rows])
    # the end token: one that ends about half of the continuations early
    often = {t: int((new == t).any(1).sum()) for t in new.unique().tolist()}
    eos = min(often, key=lambda t: (abs(often[t] - len(new) / 2), t))
    ends = [int((row == eos).nonzero()[0]) + 1 if (row == eos).any() else NEW_TOKENS
            for row in new]
    for prompt, row, end in zip(prompts, new, ends):
        assert torch.equal(generated(model, prompt, eos), row[:end]), name
    gaps = torch.stack([row[2] for row in rows])
    return {"prompt_tokens": torch.cat(prompts), "prompt_lengths": torch.tensor(PROMPTS),
            "prompt_cu_seqlens": cu(PROMPTS), "new_tokens": new, "top2_gap": gaps,
            "new_logprobs": torch.stack([row[1] for row in rows]),
            "eos_token": torch.tensor([eos]), "new_lengths_with_eos": torch.tensor(ends)}


def published(config):
    """The spelling before transformers 5: rope_theta and rope_scaling at the top."""
    config = dict(config)
    neox = config["model_type"] == "gpt_neox"
    rope = dict(config.pop("rope_parameters", None) or {})
    if "full_attention" in rope:
        if config["model_type"] != "olmo3":  # its windows have transformers' default
            config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = dict(rope["full_attention"])
    if rope:
        config["rotary_emb_base" if neox else "rope_theta"] = rope.pop("rope_theta")
        if "partial_rotary_factor" in rope:
            share = rope.pop("partial_rotary_factor")
            config["rotary_pct" if neox else "partial_rotary_factor"] = share
        plain = rope.get("rope_type", "default") == "default"
        config["rope_scaling"] = None if plain else rope
    if "dtype" in config:
        config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.46.0"
    return dict(sorted(config.items()))


def store_in_two(model, folder):
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    for limit in range(size // 2, size, 512):
        for old in list(folder.iterdir()):
            os.remove(old)
        store(model, folder, max_shard_size=limit)
        if len(list(folder.glob("*.safetensors"))) == 2:
            return
    raise SystemExit("no limit gives two files")


def make_one(out, name, summary, family, config):
    folder = fresh(out, name)
    scalar = "num_labels" in config
    torch.manual_seed(0)
    model = kind_of(config).from_config(AutoConfig.for_model(family, **config),
                                        attn_implementation="eager").eval()
    gemma = family.startswith("gemma")
    fill(model, generator(name, "weights"), one_plus=gemma,
         embedding_std=0.06 if gemma else None)
    for buffer, values in model.named_buffers():
        if buffer.endswith("e_score_correction_bias"):
            values.copy_(normal(values.shape, generator(name, buffer), 0.05))
    if name == "llama_bf16_weights":
        model = model.to(torch.bfloat16)
    (store_in_two if name == "llama_tied_sharded" else store)(model, folder)
    write_json(folder / "config_published.json", published(read_json(folder / "config.json")))

    model = open_model(folder, config)
    tokens, found = robust_numbers(name, model, config, scalar)
    noise = dict.fromkeys(found, 0.0)
    for other in (open_model(folder, config, torch.float64),
                  open_model(folder, config, attention="eager" if family == "gemma2" else "sdpa")):
        again = numbers(other, tokens, scalar)
        noise = {k: max(noise[k], difference(found[k], again[k])) for k in noise}
    assert all(noise[k] < TOLERANCE[k] / 2 for k in noise), (name, noise)
    save(folder / "io.safetensors", {"tokens": tokens, "lengths": torch.tensor(LENGTHS),
                                     "cu_seqlens": cu(LENGTHS), **found})
    meta = {"family": family, "tolerance_abs": {k: TOLERANCE[k] for k in found},
            "measured_noise_abs": {k: short(v) for k, v in noise.items()}}
    if not scalar:
        tensors = generation(name, model, config["vocab_size"])
        save(folder / "generation.safetensors", tensors)
        meta["smallest_top2_gap"] = short(float(tensors["top2_gap"].min()))
    describe(folder, summary, **meta)
    print(f"  {name}: noise {short(max(noise.values()))}", flush=True)


def make(out):
    for name, (summary, family, config) in MODELS.items():
        make_one(out / "models", name, summary, family, config)
