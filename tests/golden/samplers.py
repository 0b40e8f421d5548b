"""samplers/: what transformers' logits processors leave, chained as generate()
chains them: repetition penalty, temperature, top-k, top-p, min-p."""
import torch
from common import cu, describe, fresh, generator, ints, normal, save
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

ROWS = ["normal, deviation 2", "peaked, deviation 8", "nearly flat", "many ties",
        "all equal", "a third is -inf", "one token 60 above the rest"]
CASES = {
    "plain": {}, "temperature_0.7": {"temperature": 0.7}, "temperature_1.7": {"temperature": 1.7},
    "top_k_1": {"top_k": 1}, "top_k_5": {"top_k": 5}, "top_k_beyond_vocab": {"top_k": 500},
    "top_p_0.9": {"top_p": 0.9}, "top_p_0.5": {"top_p": 0.5}, "top_p_1": {"top_p": 1.0},
    "top_p_tiny": {"top_p": 1e-4}, "min_p_0.05": {"min_p": 0.05}, "min_p_1": {"min_p": 1.0},
    "repetition_1.3": {"repetition_penalty": 1.3}, "repetition_0.8": {"repetition_penalty": 0.8},
    "temperature_top_k_top_p": {"temperature": 0.8, "top_k": 20, "top_p": 0.9},
    "temperature_top_k_min_p": {"temperature": 1.3, "top_k": 10, "min_p": 0.1},
    "all_filters": {"temperature": 1.2, "top_k": 30, "top_p": 0.85, "min_p": 0.02,
                    "repetition_penalty": 1.3},
    "vocab_3": {"temperature": 0.5, "top_k": 2, "top_p": 0.7},
    "repetition_top_p": {"repetition_penalty": 1.15, "top_p": 0.8},
}


def some_logits(vocab, g):
    x = normal((len(ROWS), vocab), g)
    x[0] *= 2
    x[1] *= 8
    x[2] *= 0.05
    x[3] = (x[3] * 4).round() / 2
    x[4] = -0.75
    x[5] *= 2
    x[5, torch.randperm(vocab, generator=g)[: vocab // 3]] = float("-inf")
    x[6, int(ints(0, vocab, 1, g))] += 60
    return x


def processors(params):
    tiny = GPT2LMHeadModel(GPT2Config(vocab_size=5, n_embd=4, n_layer=1, n_head=1, n_positions=4,
                                      bos_token_id=0, eos_token_id=0))
    config = GenerationConfig(**{"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0,
                                 **params})
    return tiny._get_logits_processor(config, input_ids_seq_length=1, device="cpu")


def filtered(params, logits, previous):
    chain = processors(params)
    return torch.stack([chain(ids[None], row[None].clone())[0]
                        for row, ids in zip(logits, previous)])


def cut_between_equals(params, logits, previous, kept):
    """Whether the cut of a row goes through a group of equal logits."""
    penalty = {k: v for k, v in params.items() if k == "repetition_penalty"}
    out = []
    for row, keep in zip(filtered(penalty, logits, previous), kept):
        lost = ~keep & torch.isfinite(row)
        out.append(bool(lost.any() and row[keep].min() == row[lost].max()))
    return torch.tensor(out)


def make_one(out, name, params):
    vocab = {"vocab_3": 3, "all_filters": 131}.get(name, 97)
    for attempt in range(100):
        g = generator("sampler", name, attempt)
        logits = some_logits(vocab, g)
        lengths = [int(n) for n in ints(1, 20, len(ROWS), g)]
        previous = [ints(0, vocab, n, g) for n in lengths]
        left = filtered(params, logits, previous)
        kept = torch.isfinite(left)
        exact = torch.isfinite(filtered(params, logits.double(), previous))
        ties = cut_between_equals(params, logits, previous, kept)
        if all(int(a.sum()) == int(b.sum()) if t else torch.equal(a, b)
               for t, a, b in zip(ties, kept, exact)):
            break
    else:
        raise SystemExit(f"{name}: rounding decides what is kept")
    folder = fresh(out, name)
    save(folder / "io.safetensors", {
        "logits": logits, "previous_tokens": torch.cat(previous),
        "previous_cu_seqlens": cu(lengths), "filtered_logprobs": torch.log_softmax(left, -1),
        "kept_count": kept.sum(-1), "tie_sensitive": ties.to(torch.uint8)})
    describe(folder, ", ".join(f"{k} {v}" for k, v in params.items()) or "only the softmax",
             params=params, rows=ROWS)


def make(out):
    for name, params in CASES.items():
        make_one(out / "samplers", name, params)
    print(f"  {len(CASES)} filters")
