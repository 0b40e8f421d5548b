"""training/: whole steps of small models: transformers' modules, torch's AdamW and
clipping, transformers' schedules, losses written out (trl_losses.py holds them
against TRL's trainers). Every sequence is computed alone and unpadded; each run is
repeated in float64, and the difference stays far below the tolerance."""
import torch
import torch.nn.functional as F
from common import (cu, describe, difference, fill, fresh, generator, ints, load, normal, save,
                    short, split, store)
from transformers import (AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification,
                          get_constant_schedule_with_warmup, get_cosine_schedule_with_warmup,
                          get_linear_schedule_with_warmup)

LM, SCORE = AutoModelForCausalLM, AutoModelForSequenceClassification
VOCAB = 53
SIZES = {"vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
         "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False}
ADAMW = {"lr": 1e-3, "betas": [0.9, 0.95], "weight_decay": 0.05, "eps": 1e-8, "clip": 1.0,
         "schedule": "constant", "warmup_steps": 0}
TOLERANCE = {"loss": 1e-4, "grads_step0": 1e-5, "final": 1e-4}
UPDATE_TOLERANCE = {"scalars": 1e-4, "tokens": 1e-4, "actor_grads": 1e-5, "critic_grads": 1e-4,
                    "actor_grads_token_mean": 1e-5, "actor_after": 1e-4, "critic_after": 1e-4}


def new_model(name, tag, kind=LM, **changes):
    config = SIZES | changes
    if kind is SCORE:
        config |= {"num_labels": 1, "pad_token_id": 0}
    torch.manual_seed(0)
    model = kind.from_config(AutoConfig.for_model("llama", **config), attn_implementation="eager")
    return fill(model, generator(name, tag), std=0.13, spread=0.3)


def open_model(folder, kind=LM, dtype=torch.float32):
    return kind.from_pretrained(folder, attn_implementation="eager", dtype=dtype)


def next_logprobs(model, ids, with_entropy=False):
    """log p(ids[t] given what is before it) for t = 1 .., and the entropies."""
    logp = torch.log_softmax(model(input_ids=ids[None], use_cache=False).logits[0, :-1], -1)
    own = logp.gather(-1, ids[1:, None])[:, 0]
    return (own, -(logp.exp() * logp).sum(-1)) if with_entropy else own


def adamw(model, o, steps):
    """Matrices decay, norms and biases do not."""
    parts = [p for p in model.parameters() if p.dim() >= 2], \
            [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": parts[0], "weight_decay": o["weight_decay"]},
         {"params": parts[1], "weight_decay": 0.0}],
        lr=o["lr"], betas=tuple(o["betas"]), eps=o["eps"], foreach=False, fused=False)
    warmup = o["warmup_steps"]
    if o["schedule"] == "cosine":
        return optimizer, get_cosine_schedule_with_warmup(optimizer, warmup, steps)
    if o["schedule"] == "linear":
        return optimizer, get_linear_schedule_with_warmup(optimizer, warmup, steps)
    return optimizer, get_constant_schedule_with_warmup(optimizer, warmup)


def weights(model):
    return {n: p.detach().clone() for n, p in model.named_parameters()}


def gradients(model):
    return {n: p.grad.detach().clone() for n, p in model.named_parameters()}


def run_steps(model, o, steps, losses):
    """losses(model, step) yields (loss, numbers); gradients of a step add up."""
    optimizer, schedule = adamw(model, o, steps)
    rows, first = [], None
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        row = {"loss": 0.0}
        for loss, more in losses(model, step):
            loss.backward()
            row["loss"] += float(loss.detach())
            for name, value in more.items():
                row[name] = row.get(name, 0.0) + float(value)
        first = first or gradients(model)
        row["grad_norm"] = float(torch.nn.utils.clip_grad_norm_(model.parameters(), o["clip"]))
        row["lr"] = schedule.get_last_lr()[0]
        optimizer.step()
        schedule.step()
        rows.append(row)
    columns = {k: torch.tensor([r[k] for r in rows], dtype=torch.float64) for k in rows[0]}
    return columns, first, weights(model)


def trajectory(folder, kind, o, steps, losses, summary, **meta):
    """Runs in float32, again in float64, and stores the first."""
    got = run_steps(open_model(folder / "init", kind), o, steps, losses)
    exact = run_steps(open_model(folder / "init", kind, torch.float64), o, steps, losses)
    noise = {"loss": difference(got[0]["loss"], exact[0]["loss"])}
    for at, part in ((1, "grads_step0"), (2, "final")):
        noise[part] = max(difference(got[at][k], exact[at][k]) for k in got[at])
    assert all(noise[k] < TOLERANCE[k] / 3 for k in noise), (folder.name, noise)
    for part, tensors in zip(("trajectory", "grads_step0", "final"), got):
        save(folder / f"{part}.safetensors", tensors)
    describe(folder, summary, spec={"optimizer": o, "steps": steps, **meta},
             tolerance_abs=TOLERANCE, measured_noise_abs={k: short(v) for k, v in noise.items()})
    norms = got[0]["grad_norm"]
    print(f"  {folder.name}: loss {got[0]['loss'][0]:.4f} -> {got[0]['loss'][-1]:.4f}, gradient"
          f" norms {norms.min():.2f} .. {norms.max():.2f}, noise {noise}", flush=True)
    return got


# -- supervised fine-tuning

def sft_data(steps, batch):
    g = generator("sft", "data")
    lengths, prompts = [], []
    for _ in range(steps):
        lengths += ints(4, 30, batch, g).tolist()
        prompts += [int(ints(1, n - 1, 1, g)) for n in lengths[-batch:]]
        prompts[-1] = lengths[-1]  # a sequence whose every token is masked
    tokens = ints(0, VOCAB, sum(lengths), g)
    mask = torch.cat([torch.arange(n) >= p for n, p in zip(lengths, prompts)]).to(torch.uint8)
    return {"tokens": tokens, "lengths": torch.tensor(lengths), "cu_seqlens": cu(lengths),
            "prompt_lengths": torch.tensor(prompts), "loss_mask": mask,
            "step_cu_sequences": torch.arange(0, steps + 1) * batch}


def padded_loss(folder, seqs, masks):
    """transformers' own loss of a padded batch."""
    width = max(len(s) for s in seqs)
    ids = torch.stack([F.pad(s, (0, width - len(s))) for s in seqs])
    labels = torch.stack([F.pad(torch.where(m.bool(), s, -100), (0, width - len(s)), value=-100)
                          for s, m in zip(seqs, masks)])
    seen = torch.stack([F.pad(torch.ones_like(s), (0, width - len(s))) for s in seqs])
    model = open_model(folder)
    return float(model(input_ids=ids, attention_mask=seen, labels=labels).loss.detach())


def make_sft(out, name, micro_batches):
    steps, batch = 20, 8
    folder = fresh(out, name)
    store(new_model("sft", "init"), folder / "init")
    data = sft_data(steps, batch)
    save(folder / "data.safetensors", data)
    seqs = split(data["tokens"], data["lengths"])
    masks = split(data["loss_mask"], data["lengths"])

    def losses(model, step):
        rows = range(step * batch, (step + 1) * batch)
        total = sum(int(masks[i][1:].sum()) for i in rows)
        size = batch // micro_batches
        for first in range(rows.start, rows.stop, size):
            part = range(first, first + size)
            nll = sum((-next_logprobs(model, seqs[i]) * masks[i][1:]).sum() for i in part)
            yield nll / total, {"tokens": sum(int(masks[i][1:].sum()) for i in part)}

    o = ADAMW | {"schedule": "cosine", "warmup_steps": 4, "clip": 2.5}
    got = trajectory(folder, LM, o, steps, losses,
                     "SFT with prompt masking: sum over the answers' tokens / their number",
                     batch=batch, micro_batches=micro_batches)
    theirs = padded_loss(folder / "init", seqs[:batch], masks[:batch])
    assert abs(theirs - float(got[0]["loss"][0])) < 1e-5, theirs
    return folder, got


def make_both_sft(out):
    whole, first = make_sft(out, "sft", 1)
    _, again = make_sft(out, "sft_micro_batches", 4)
    assert max(difference(first[2][k], again[2][k]) for k in first[2]) < 1e-4, whole


# -- pairs

def pairs(name, steps, batch, low=0):
    g = generator(name, "data")
    prompts, sides = [], {"chosen": [], "rejected": []}
    for _ in range(steps * batch):
        prompt = ints(low, VOCAB, int(ints(1, 10, 1, g)), g)
        prompts.append(len(prompt))
        for side in sides.values():
            side.append(torch.cat([prompt, ints(low, VOCAB, int(ints(1, 18, 1, g)), g)]))
    tensors = {"prompt_lengths": torch.tensor(prompts),
               "step_cu_pairs": torch.arange(0, steps + 1) * batch}
    for side, seqs in sides.items():
        lengths = [len(s) for s in seqs]
        tensors |= {f"{side}_tokens": torch.cat(seqs), f"{side}_lengths": torch.tensor(lengths),
                    f"{side}_cu_seqlens": cu(lengths)}
    return prompts, sides, tensors


def make_dpo(out):
    steps, batch, beta = 10, 4, 0.1
    folder = fresh(out, "dpo")
    model = new_model("dpo", "init", tie_word_embeddings=True)
    store(model, folder / "init")
    g = generator("dpo", "reference")
    with torch.no_grad():
        for _, p in sorted(model.named_parameters()):
            p.add_(normal(p.shape, g, 0.02))
    store(model, folder / "ref")
    prompts, sides, tensors = pairs("dpo", steps, batch)
    ref = open_model(folder / "ref")
    with torch.no_grad():
        for side, seqs in sides.items():
            tensors[f"ref_{side}_logps"] = torch.stack(
                [next_logprobs(ref, s)[p - 1:].sum() for s, p in zip(seqs, prompts)])
    save(folder / "data.safetensors", tensors)

    def losses(model, step):
        rows = slice(step * batch, (step + 1) * batch)
        rewards = {}
        for side, seqs in sides.items():
            own = torch.stack([next_logprobs(model, s)[p - 1:].sum()
                               for s, p in zip(seqs[rows], prompts[rows])])
            rewards[side] = beta * (own - tensors[f"ref_{side}_logps"][rows])
        margin = rewards["chosen"] - rewards["rejected"]
        yield -F.logsigmoid(margin).mean(), {
            "chosen_reward": rewards["chosen"].detach().mean(),
            "rejected_reward": rewards["rejected"].detach().mean(),
            "accuracy": (margin > 0).double().mean()}

    trajectory(folder, LM, ADAMW | {"schedule": "linear", "clip": 2.0}, steps, losses,
               "DPO against a frozen reference that differs from the policy", batch=batch,
               beta=beta)


def make_reward(out):
    steps, batch = 10, 4
    folder = fresh(out, "reward")
    store(new_model("reward", "init", SCORE), folder / "init")
    _, sides, tensors = pairs("reward", steps, batch, low=1)  # 0 is the padding token
    save(folder / "data.safetensors", tensors)

    def losses(model, step):
        rows = slice(step * batch, (step + 1) * batch)
        scores = {side: torch.cat([model(input_ids=s[None], use_cache=False).logits[0]
                                   for s in seqs[rows]]) for side, seqs in sides.items()}
        margin = scores["chosen"] - scores["rejected"]
        yield -F.logsigmoid(margin).mean(), {
            "chosen_score": scores["chosen"].detach().mean(),
            "rejected_score": scores["rejected"].detach().mean(),
            "accuracy": (margin > 0).double().mean()}

    trajectory(folder, SCORE, ADAMW | {"warmup_steps": 2}, steps, losses,
               "pairwise reward model: -log sigmoid(chosen - rejected)", batch=batch)


# -- one update of PPO and of GRPO

def rollouts(name, prompts, group):
    g = generator(name, "data")
    seqs, prompt_lengths, answers = [], [], []
    for _ in range(prompts):
        prompt = ints(1, VOCAB, int(ints(1, 9, 1, g)), g)
        for _ in range(group):
            answers.append(int(ints(1, 17, 1, g)))
            prompt_lengths.append(len(prompt))
            seqs.append(torch.cat([prompt, ints(1, VOCAB, answers[-1], g)]))
    lengths = [len(s) for s in seqs]
    data = {"tokens": torch.cat(seqs), "lengths": torch.tensor(lengths),
            "cu_seqlens": cu(lengths), "prompt_lengths": torch.tensor(prompt_lengths),
            "response_lengths": torch.tensor(answers), "response_cu_seqlens": cu(answers)}
    return seqs, prompt_lengths, data, g


def answers_of(per_token, seqs, prompts, end=None):
    """What per_token gives for the answers' tokens, packed."""
    return torch.cat([per_token(s)[p - 1:end] for s, p in zip(seqs, prompts)])


def values_of(critic):
    return lambda ids: critic.score(
        critic.model(input_ids=ids[None], use_cache=False).last_hidden_state)[0, :, 0]


def one_step(model, o, loss):
    optimizer, _ = adamw(model, o, 1)
    loss.backward()
    first = gradients(model)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), o["clip"]).detach()
    optimizer.step()
    return first, norm, weights(model)


def in_type(data, dtype):
    return {k: v.to(dtype) if v.is_floating_point() else v for k, v in data.items()}


def store_update(folder, summary, spec, data, run):
    got, exact = run(torch.float32), run(torch.float64)
    noise = {part: max(difference(got[part][k], exact[part][k]) for k in got[part])
             for part in got}
    assert all(noise[p] < UPDATE_TOLERANCE[p] / 3 for p in noise), (folder.name, noise)
    save(folder / "data.safetensors", data)
    for part, tensors in got.items():
        save(folder / f"{part}.safetensors", tensors)
    describe(folder, summary, spec=spec, tolerance_abs={p: UPDATE_TOLERANCE[p] for p in got},
             measured_noise_abs={p: short(v) for p, v in noise.items()})
    print(f"  {folder.name}: {({k: round(float(v), 4) for k, v in got['scalars'].items()})}")


def make_ppo(out):
    folder = fresh(out, "ppo")
    store(new_model("ppo", "actor"), folder / "actor")
    store(new_model("ppo", "critic", SCORE), folder / "critic")
    seqs, prompts, data, g = rollouts("ppo", 6, 1)
    total = int(data["response_lengths"].sum())
    actor, critic = open_model(folder / "actor"), open_model(folder / "critic", SCORE)
    with torch.no_grad():
        now = answers_of(lambda s: next_logprobs(actor, s), seqs, prompts)
        value = answers_of(values_of(critic), seqs, prompts, -1)
    data |= {"old_logprobs": now + normal(total, g, 0.25), "advantages": normal(total, g),
             "old_values": value + normal(total, g, 0.3), "returns": value + normal(total, g)}
    spec = {"clip_ratio": 0.2, "value_clip": 0.2, "entropy_coef": 0.01,
            "optimizer": ADAMW | {"lr": 1e-4}, "critic_optimizer": ADAMW | {"lr": 5e-4}}

    def run(dtype):
        d = in_type(data, dtype)
        actor = open_model(folder / "actor", LM, dtype)
        both = [next_logprobs(actor, s, with_entropy=True) for s in seqs]
        logp = torch.cat([own[p - 1:] for (own, _), p in zip(both, prompts)])
        entropy = torch.cat([own[p - 1:] for (_, own), p in zip(both, prompts)])
        ratio = (logp - d["old_logprobs"]).exp()
        plain = -d["advantages"] * ratio
        clipped = -d["advantages"] * ratio.clamp(1 - spec["clip_ratio"], 1 + spec["clip_ratio"])
        pg = torch.maximum(plain, clipped).mean()
        loss = pg - spec["entropy_coef"] * entropy.mean()
        critic = open_model(folder / "critic", SCORE, dtype)
        values = answers_of(values_of(critic), seqs, prompts, -1)
        near = values.clamp(d["old_values"] - spec["value_clip"],
                            d["old_values"] + spec["value_clip"])
        a, b = (values - d["returns"]) ** 2, (near - d["returns"]) ** 2
        vf = 0.5 * torch.maximum(a, b).mean()
        scalars = {"pg_loss": pg, "entropy": entropy.mean(), "actor_loss": loss, "vf_loss": vf,
                   "clip_fraction": (clipped > plain).to(dtype).mean(),
                   "approx_kl": (d["old_logprobs"] - logp).mean(),
                   "vf_clip_fraction": (b > a).to(dtype).mean()}
        scalars = {k: v.detach() for k, v in scalars.items()}
        actor_step = one_step(actor, spec["optimizer"], loss)
        critic_step = one_step(critic, spec["critic_optimizer"], vf)
        scalars |= {"actor_grad_norm": actor_step[1], "critic_grad_norm": critic_step[1]}
        return {"scalars": scalars,
                "tokens": {"logprobs": logp.detach(), "entropy": entropy.detach(),
                           "values": values.detach()},
                "actor_grads": actor_step[0], "critic_grads": critic_step[0],
                "actor_after": actor_step[2], "critic_after": critic_step[2]}

    store_update(folder, "one PPO update of actor and critic", spec, data, run)


def make_grpo(out):
    folder = fresh(out, "grpo")
    store(new_model("grpo", "actor"), folder / "actor")
    group = 4
    seqs, prompts, data, g = rollouts("grpo", 3, group)
    answers = data["response_lengths"]
    total, count = int(answers.sum()), len(seqs)
    spec = {"group": group, "std_eps": 1e-4, "clip_low": 0.2, "clip_high": 0.28, "beta": 0.04,
            "max_response_length": 16, "optimizer": ADAMW | {"lr": 1e-4}}
    rewards = 3 * torch.rand(count, generator=g) - 1
    rewards[:group] = (rewards[:group] > 0.3).float()
    rewards[group:2 * group] = 1.0  # a group without spread has no advantages
    grouped = rewards.view(-1, group)
    advantages = (grouped - grouped.mean(1, keepdim=True)) / (
        grouped.std(1, keepdim=True) + spec["std_eps"])
    actor = open_model(folder / "actor")
    with torch.no_grad():
        now = answers_of(lambda s: next_logprobs(actor, s), seqs, prompts)
    data |= {"rewards": rewards, "advantages": advantages.flatten(),
             "group": torch.arange(count) // group,
             "old_logprobs": now + normal(total, g, 0.25),
             "ref_logprobs": now + normal(total, g, 0.4)}

    def forward(dtype):
        d = in_type(data, dtype)
        model = open_model(folder / "actor", LM, dtype)
        logp = answers_of(lambda s: next_logprobs(model, s), seqs, prompts)
        advantage = torch.repeat_interleave(d["advantages"], answers)
        ratio = (logp - d["old_logprobs"]).exp()
        near = ratio.clamp(1 - spec["clip_low"], 1 + spec["clip_high"])
        surrogate = -torch.minimum(ratio * advantage, near * advantage)
        apart = d["ref_logprobs"] - logp
        kl = apart.exp() - apart - 1
        clipped = ((ratio < 1 - spec["clip_low"]) & (advantage < 0)) | (
            (ratio > 1 + spec["clip_high"]) & (advantage > 0))
        return model, logp, surrogate + spec["beta"] * kl, kl, clipped.to(dtype)

    def run(dtype):
        model, logp, per_token, kl, clipped = forward(dtype)
        sums = torch.stack([s.sum() for s in split(per_token, answers)])
        losses = {"loss_grpo": (sums / answers.to(dtype)).mean(),
                  "loss_token_mean": per_token.sum() / total,
                  "loss_dr_grpo": per_token.sum() / (count * spec["max_response_length"])}
        scalars = {k: v.detach() for k, v in losses.items()}
        first, norm, after = one_step(model, spec["optimizer"], losses["loss_grpo"])
        scalars |= {"kl": kl.mean().detach(), "clip_fraction": clipped.mean(),
                    "actor_grad_norm": norm}
        other, _, again, _, _ = forward(dtype)
        (again.sum() / total).backward()
        return {"scalars": scalars,
                "tokens": {"logprobs": logp.detach(), "kl": kl.detach(),
                           "token_loss": per_token.detach()},
                "actor_grads": first, "actor_grads_token_mean": gradients(other),
                "actor_after": after}

    store_update(folder, "one GRPO update, three answers' groups of four, k3 to a reference",
                 spec, data, run)


def make(out):
    out = out / "training"
    make_both_sft(out)
    make_dpo(out)
    make_reward(out)
    make_ppo(out)
    make_grpo(out)
