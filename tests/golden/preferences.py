"""rl/kto, rl/rm_margin and training/ptx: losses with the inputs and formulas of the programs that
brought them up, held against TRL's trainers and transformers' own language-model loss.

Only norms and one dot product of each gradient of training/ptx are stored."""
import types
from unittest import mock

import torch
from common import describe, fresh, load, normal, read_json, split, write_lines
from rl import formula, make_case, with_gradient
from training import answers_of, next_logprobs, open_model, padded_loss

ALLOWED = 1e-5
BETA = 0.3


@formula
def kto(logp, ref_logp, kl_logp, kl_ref_logp, desirable, beta, desirable_weight,
        undesirable_weight):
    """KTO, eq. 8: values by the logistic function of the distance to z0."""
    point = (kl_logp - kl_ref_logp).mean().clamp(min=0)

    def loss_of(x):
        distance = x - ref_logp - point
        value = torch.where(desirable > 0, desirable_weight * torch.sigmoid(beta * distance),
                            undesirable_weight * torch.sigmoid(-beta * distance))
        weight = torch.where(desirable > 0, desirable_weight, undesirable_weight)
        return {"loss": (weight - value).mean(), "point": point}

    return with_gradient(loss_of, logp, "dlogp")


@formula
def reward_margin(chosen, rejected, margin, center):
    """Llama 2, eq. 2, and the auxiliary loss of Eisenstein et al. 2023, eq. 4."""
    def loss_of(x):
        odds = torch.exp(x - rejected - margin)
        return {"loss": (torch.log((1 + odds) / odds) + center * (x + rejected) ** 2).mean()}

    return with_gradient(loss_of, chosen, "dchosen")


def inputs(function, g, rows=7):
    noise = lambda scale: normal((rows,), g, scale)  # noqa: E731
    if function == "reward_margin":
        return {"chosen": noise(1.5), "rejected": noise(1.5), "margin": noise(0.5).abs()}
    ref, kl_ref = -(5 + noise(2.0).abs()), -(6 + noise(2.0).abs())
    return {"logp": ref + noise(2.0), "ref_logp": ref, "kl_logp": kl_ref + 0.8 + noise(1.0),
            "kl_ref_logp": kl_ref, "desirable": (torch.arange(rows) % 3 != 1).float()}


CASES = {
    "kto": ("kto", {"beta": BETA, "desirable_weight": 1.0, "undesirable_weight": 1.3}),
    "rm_margin": ("reward_margin", {"center": 0.02}),
}


# -- TRL

def trl_kto(i, params):
    from trl.trainer.kto_trainer import KTOTrainer

    me = mock.MagicMock(calculate_KL=True, precompute_ref_logps=True, loss_type="kto",
                        aux_loss_enabled=False, _tp_size=1, **params)
    me.accelerator.device = torch.device("cpu")
    me.accelerator.gather_for_metrics = lambda x: x
    me._compute_kl_logps = lambda *_: i["kl_logp"]
    zero = torch.zeros_like(i["logp"])[:, None]
    outputs = types.SimpleNamespace(log_probs=i["logp"][:, None], entropy=zero, mean_logits=zero)
    ids = torch.ones(len(i["logp"]), 2, dtype=torch.long)
    return KTOTrainer._compute_loss(me, lambda **_: outputs, {
        "input_ids": ids, "attention_mask": ids, "completion_mask": ids,
        "KL_input_ids": ids, "KL_attention_mask": ids, "KL_completion_mask": ids,
        "label": i["desirable"].bool(), "ref_logps": i["ref_logp"],
        "ref_KL_logps": i["kl_ref_logp"]}, False)


def trl_reward(i, params):
    from trl.trainer.reward_trainer import RewardTrainer

    me = mock.MagicMock(_total_train_tokens=0)
    me.args.center_rewards_coefficient = params["center"]
    me.accelerator.gather_for_metrics = me.accelerator.gather = lambda x: x
    scores = torch.cat([i["chosen"], i["rejected"]])[:, None]
    return RewardTrainer.compute_loss(
        me, lambda **_: types.SimpleNamespace(logits=scores),
        {"margin": i["margin"], "attention_mask": torch.ones_like(scores)})


def check_trl(out):
    for name, theirs in (("kto", trl_kto), ("rm_margin", trl_reward)):
        case = out / "rl" / name
        got = theirs(load(case / "inputs.safetensors"), CASES[name][1])
        apart = abs(float(got) - float(load(case / "outputs.safetensors")["loss"]))
        assert apart < ALLOWED, (name, apart)


# -- PPO-ptx: one backward of the policy's loss and of the texts' loss

def make_ptx(out):
    grpo, sft = out / "training" / "grpo", out / "training" / "sft"
    data, texts = load(grpo / "data.safetensors"), load(sft / "data.safetensors")
    clip = read_json(grpo / "meta.json")["spec"]
    coef, rows = 0.7, 6
    seqs = split(data["tokens"], data["lengths"])
    prompts = data["prompt_lengths"].tolist()
    ptx = split(texts["tokens"], texts["lengths"])[:rows]

    def run(dtype):
        model = open_model(grpo / "actor", dtype=dtype)
        logp = answers_of(lambda s: next_logprobs(model, s), seqs, prompts)
        advantage = torch.repeat_interleave(data["advantages"], data["response_lengths"]).to(dtype)
        ratio = (logp - data["old_logprobs"].to(dtype)).exp()
        near = ratio.clamp(1 - clip["clip_low"], 1 + clip["clip_high"])
        policy = -torch.minimum(ratio * advantage, near * advantage).mean()
        own = torch.cat([next_logprobs(model, s) for s in ptx])
        (policy - coef * own.mean()).backward()
        found = {}
        for name, p in model.named_parameters():
            flat = p.grad.double().flatten()
            wave = torch.cos(0.37 * torch.arange(flat.numel(), dtype=torch.double))
            found[name] = [float(f"{x:.9g}") for x in (flat.norm(), flat @ wave)]
        return {"pg_loss": float(policy.detach()), "ptx_loss": float(-own.mean().detach()),
                "gradients": found}

    got, exact = run(torch.float32), run(torch.float64)
    noise = max(abs(a - b) for name in got["gradients"]
                for a, b in zip(got["gradients"][name], exact["gradients"][name]))
    assert noise < 1e-5, noise
    all_tokens = [torch.ones_like(s) for s in ptx]
    theirs = padded_loss(out / "training" / "grpo" / "actor", ptx, all_tokens)
    assert abs(theirs - exact["ptx_loss"]) < ALLOWED, theirs
    folder = fresh(out, "training", "ptx")
    write_lines(folder / "case.json", [exact])
    describe(folder, "gradient of training/grpo's policy loss (token mean, no KL) and coef times the "
             "language-model loss of the first rows of training/sft", coef=coef, rows=rows,
             tolerance_abs=1e-4)


def make(out):
    for name, (function, params) in CASES.items():
        make_case(out / "rl", name, function, params, inputs_from=inputs)
    check_trl(out)
    make_ptx(out)
    print(f"  {len(CASES)} cases are those of TRL's trainers, training/ptx has transformers' loss")
