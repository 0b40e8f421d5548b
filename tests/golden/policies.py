"""rl/policy_*, rl/correction_* and what goes with them: the losses of `algorithm.loss`, the
weights of `algorithm.correction`, and advantages as other programs normalise them.

Formulas in float64 as their papers write them (per response, with products and powers)
and gradients from autograd; the losses that TRL has must be those of its trainers."""
from unittest import mock

import torch
from common import load, normal
from rl import (formula, gae_of, make_case, masked_mean, mean_of, ragged_mask, whitened,
                with_gradient)

ALLOWED = 1e-5


def per_response(x, mask):
    """Mean over the tokens of each response."""
    return (x * mask).sum(-1) / mask.sum(-1)


def distance(old_logp, logp, mask):
    return masked_mean(old_logp - logp, mask)


@formula
def policy_loss_gspo_sequence(logp, old_logp, advantages, mask, eps_low, eps_high):
    """GSPO, eq. 5 and 7: one ratio, one advantage and one minimum per response."""
    def loss_of(x):
        s = torch.exp(((x - old_logp) * mask).sum(-1)) ** (1 / mask.sum(-1))
        one = per_response(advantages, mask)
        plain, clipped = s * one, s.clamp(1 - eps_low, 1 + eps_high) * one
        return {"loss": -torch.minimum(plain, clipped).mean(),
                "clip_ratio": masked_mean((clipped < plain).double()[:, None] * mask, mask),
                "approx_kl": distance(old_logp, x, mask)}

    return with_gradient(loss_of, logp, "dlogp")


@formula
def policy_loss_gspo(logp, old_logp, advantages, mask, eps_low, eps_high,
                     agg="seq-mean-token-mean"):
    """GSPO-token, eq. 13 and 14: advantages differ within a response."""
    def loss_of(x):
        s = torch.exp(per_response(x - old_logp, mask)).detach()[:, None]
        ratio = s * torch.exp(x) / torch.exp(x).detach()
        plain, clipped = ratio * advantages, ratio.clamp(1 - eps_low, 1 + eps_high) * advantages
        return {"loss": mean_of(-torch.minimum(plain, clipped), mask, agg),
                "clip_ratio": masked_mean((clipped < plain).double(), mask),
                "approx_kl": distance(old_logp, x, mask)}

    return with_gradient(loss_of, logp, "dlogp")


@formula
def policy_loss_cispo(logp, old_logp, advantages, mask, eps_low, eps_high, agg="token-mean"):
    """CISPO, eq. 4 and 5 of MiniMax-M1."""
    def loss_of(x):
        ratio = torch.exp(x - old_logp)
        weight = ratio.clamp(1 - eps_low, 1 + eps_high).detach()
        return {"loss": mean_of(-weight * advantages * x, mask, agg),
                "clip_ratio": masked_mean((weight != ratio).double(), mask),
                "approx_kl": distance(old_logp, x, mask)}

    return with_gradient(loss_of, logp, "dlogp")


@formula
def policy_loss_sapo(logp, old_logp, advantages, mask, tau_pos, tau_neg, agg="token-mean"):
    """SAPO: a gate of each ratio; its paper's mean is that of the responses' means."""
    def loss_of(x):
        tau = torch.where(advantages > 0, tau_pos, tau_neg).double()
        gate = 4 / tau / (1 + torch.exp(-tau * (torch.exp(x - old_logp) - 1)))
        return {"loss": mean_of(-gate * advantages, mask, agg),
                "clip_ratio": torch.zeros(()).double(), "approx_kl": distance(old_logp, x, mask)}

    return with_gradient(loss_of, logp, "dlogp")


@formula
def policy_loss_gmpo(logp, old_logp, advantages, mask, eps_low, eps_high):
    """GMPO: the root of the product of a response's ratios, each clipped on one side."""
    def loss_of(x):
        one = per_response(advantages, mask)
        ratio = torch.exp(x - old_logp)
        low, high = torch.exp(torch.tensor([-eps_low, eps_high]).double())
        rising = (one > 0)[:, None]
        kept = torch.where(rising, torch.minimum(ratio, high), torch.maximum(ratio, low))
        product = torch.where(mask > 0, kept, 1.0).prod(-1)
        return {"loss": -(product ** (1 / mask.sum(-1)) * one).mean(),
                "clip_ratio": masked_mean((kept != ratio).double(), mask),
                "approx_kl": distance(old_logp, x, mask)}

    return with_gradient(loss_of, logp, "dlogp")


@formula
def policy_loss_clip_cov(logp, old_logp, advantages, mask, chosen, eps):
    """Clip-Cov: chosen tokens get no gradient."""
    def loss_of(x):
        ratio = torch.exp(x - old_logp)
        kept = torch.minimum(ratio * advantages, ratio.clamp(1 - eps, 1 + eps) * advantages)
        return {"loss": masked_mean(torch.where(chosen > 0, 0.0, -kept), mask),
                "clip_ratio": masked_mean(chosen, mask),
                "approx_kl": distance(old_logp, x, mask)}

    return with_gradient(loss_of, logp, "dlogp")


@formula
def policy_loss_kl_cov(logp, old_logp, advantages, mask, share, coef):
    """KL-Cov: the tokens of the largest covariances pay |log ratio|."""
    centred = lambda x: x - masked_mean(x, mask)  # noqa: E731
    covariance = torch.where(mask > 0, centred(old_logp) * centred(advantages), -torch.inf)
    count = max(1, int(share * mask.sum()))
    chosen = torch.zeros_like(mask).flatten()
    chosen[covariance.flatten().topk(count).indices] = 1
    chosen = chosen.view_as(mask)

    def loss_of(x):
        apart = x - old_logp
        own = -torch.exp(apart) * advantages + coef * chosen * apart.abs()
        return {"loss": masked_mean(own, mask), "chosen": chosen,
                "clip_ratio": torch.zeros(()).double(), "approx_kl": distance(old_logp, x, mask)}

    return with_gradient(loss_of, logp, "dlogp")


def weights_of(old_logp, rollout_logp, mask, kind, floor, cap):
    token = torch.exp(old_logp) / torch.exp(rollout_logp)
    product = torch.where(mask > 0, token, 1.0).prod(-1, keepdim=True)
    middle = product ** (1 / mask.sum(-1, keepdim=True))
    within = lambda x: (x >= floor) & (x <= cap)  # noqa: E731
    one, cut = {
        "tis": lambda: (token.clamp(floor, cap), ~within(token)),
        "icepop": lambda: (torch.where(within(token), token, 0.0), ~within(token)),
        "sequence_tis": lambda: (product.clamp(floor, cap), ~within(product)),
        "sequence_mask": lambda: (torch.where(within(product), product, 0.0), ~within(product)),
        "seq-mask-tis": lambda: (torch.where(within(middle), token, 0.0), ~within(middle)),
        "rejection": lambda: (within(middle).double(), ~within(middle)),
    }[kind]()
    return one.expand_as(token), cut.expand_as(token).double()


@formula
def policy_loss_importance(logp, old_logp, rollout_logp, advantages, mask, kind, low, high,
                           eps=0.2):
    """PPO's clipped loss times a weight from the sampler's probabilities."""
    weights, cut = weights_of(old_logp, rollout_logp, mask, kind, low, high)

    def loss_of(x):
        ratio = torch.exp(x - old_logp)
        kept = torch.minimum(ratio * advantages, ratio.clamp(1 - eps, 1 + eps) * advantages)
        return {"loss": mean_of(-kept * weights, mask, "token-mean"),
                "is_weight_mean": masked_mean(weights, mask),
                "is_clip_frac": masked_mean(cut, mask),
                "rollout_logprob_gap": masked_mean((old_logp - rollout_logp).abs(), mask)}

    return with_gradient(loss_of, logp, "dlogp")


@formula
def leave_one_out(scores):
    """For each score: mean and unbiased deviation of the others."""
    others = [torch.cat([scores[:i], scores[i + 1:]]) for i in range(len(scores))]
    return {"baseline": torch.stack([x.mean() for x in others]),
            "std": torch.stack([x.std() for x in others])}


@formula
def adv_others(scores, group, eps):
    """Less the others' mean, by their deviation; undivided where they do not differ."""
    out = torch.zeros_like(scores)
    for k in group.unique().tolist():
        own = scores[group == k]
        found = leave_one_out(own)
        apart = own - found["baseline"]
        out[group == k] = torch.where(found["std"] > 0, apart / (found["std"] + eps), apart)
    return {"adv": out}


@formula
def adv_reinforce_pp_baseline(token_rewards, group, mask):
    """A response's rewards less the mean of its group, whitened over the tokens."""
    sums, out = token_rewards.sum(-1), torch.zeros_like(mask)
    for k in group.unique().tolist():
        own = sums[group == k]
        out[group == k] = (own - own.mean())[:, None].expand(-1, mask.shape[1])
    return {"adv": whitened(out, mask) * mask}


@formula
def gae_whitened_population(rewards, values, mask, gamma, lam):
    """OpenRLHF: the variance has n in its denominator."""
    found = gae_of(rewards, values, mask, gamma, lam)["advantages"]
    mean = masked_mean(found, mask)
    return {"advantages": (found - mean) * mask
            * torch.rsqrt(masked_mean((found - mean) ** 2, mask).clamp(min=1e-8))}


@formula
def gae_by_length(rewards, values, mask, lam, alpha):
    """VAPO: returns with lam, advantages with 1 - 1 / (alpha length)."""
    out = {"returns": gae_of(rewards, values, mask, 1.0, lam)["returns"],
           "advantages": torch.zeros_like(rewards)}
    for i, row in enumerate(mask):
        own = slice(i, i + 1)
        by_length = max(0.0, 1 - 1 / max(1.0, alpha * float(row.sum())))
        out["advantages"][own] = gae_of(rewards[own], values[own], mask[own], 1.0,
                                        by_length)["advantages"]
    return out


@formula
def overlong_penalty(lengths, max_length, buffer, factor):
    """DAPO, eq. 13; lengths beyond max_length do not occur here."""
    return {"penalty": -((lengths - (max_length - buffer)) / buffer).clamp(min=0) * factor}


@formula
def pair_simpo(chosen, rejected, chosen_lengths, rejected_lengths, beta, margin):
    """SimPO, eq. 6: log-probabilities by length, without a reference."""
    def loss_of(x):
        gap = beta * x / chosen_lengths - beta * rejected / rejected_lengths - margin
        return {"loss": torch.log1p(torch.exp(-gap)).mean()}

    return with_gradient(loss_of, chosen, "dchosen")


@formula
def pair_orpo(chosen, rejected, chosen_lengths, rejected_lengths, beta):
    """ORPO, eq. 6 and 7: likelihood of the chosen response and the ratio of odds."""
    def loss_of(x):
        good, bad = torch.exp(x / chosen_lengths), torch.exp(rejected / rejected_lengths)
        ratio = good / (1 - good) / (bad / (1 - bad))
        return {"loss": (-torch.log(good)
                         - beta * torch.log(ratio / (1 + ratio))).mean()}

    return with_gradient(loss_of, chosen, "dchosen")


# -- inputs

def inputs(function, g, rows=5, width=11, by_token=False):
    mask = ragged_mask(g, rows, width)
    logp = normal((rows, width), g, 0.3) - 1.2
    noise = lambda scale: normal((rows, width), g, scale)  # noqa: E731
    if function.startswith("gae"):
        return {"rewards": noise(0.3) * mask, "values": noise(1.0) * mask, "mask": mask}
    if function == "adv_reinforce_pp_baseline":
        return {"token_rewards": noise(0.3) * mask, "mask": mask, "group": torch.arange(rows) // 3}
    if function in ("adv_others", "leave_one_out"):
        scores = (normal((rows * 4,), g, 2) * 2).round() / 2
        scores[4:8] = 1.0  # a group without spread
        scores[8:12] = torch.tensor([1.0, 1.0, 1.0, 3.0])  # others without spread
        found = {"scores": scores, "group": torch.arange(rows * 4) // 4}
        return found if function == "adv_others" else {"scores": scores[:4]}
    if function.startswith("pair_"):
        lengths = {f"{side}_lengths": (1 + torch.arange(rows) * step % 7).float()
                   for side, step in (("chosen", 2), ("rejected", 3))}
        return lengths | {side: -(1 + normal((rows,), g, 0.4).abs()) * lengths[f"{side}_lengths"]
                          for side in ("chosen", "rejected")}
    if function == "overlong_penalty":
        return {"lengths": torch.tensor([0.0, 1, 7, 8, 9, 12, 15, 16])}
    once = normal((rows, 1), g, 1.5).expand(rows, width).contiguous()
    found = {"logp": logp, "old_logp": logp + noise(0.4), "mask": mask,
             "advantages": noise(1.5) if by_token else once}
    if function == "policy_loss_clip_cov":
        found["chosen"] = (torch.rand(rows, width, generator=g) < 0.2).float() * mask
    if function == "policy_loss_importance":
        found["rollout_logp"] = found["old_logp"] + noise(0.3)
    return found


RANGE = {"eps_low": 0.1, "eps_high": 0.15}
NARROW = {"eps_low": 0.05, "eps_high": 0.08}
POLICIES = {
    "policy_gspo_sequence": ("policy_loss_gspo_sequence", NARROW, {"rows": 9}),
    "policy_gspo": ("policy_loss_gspo", NARROW, {"rows": 9, "by_token": True}),
    "policy_cispo": ("policy_loss_cispo", RANGE, {"by_token": True}),
    "policy_cispo_no_floor": ("policy_loss_cispo", {"eps_low": 1.0, "eps_high": 0.3}),
    "policy_sapo": ("policy_loss_sapo", {"tau_pos": 1.0, "tau_neg": 1.05,
                                         "agg": "seq-mean-token-mean"}),
    "policy_gmpo": ("policy_loss_gmpo", {"eps_low": 0.2, "eps_high": 0.3}, {"rows": 7}),
    "policy_clip_cov": ("policy_loss_clip_cov", {"eps": 0.2}, {"by_token": True}),
    "policy_kl_cov": ("policy_loss_kl_cov", {"share": 0.1, "coef": 0.7}, {"by_token": True}),
}
CORRECTIONS = {f"correction_{kind}": ("policy_loss_importance",
                                      {"kind": kind, "low": low, "high": high},
                                      {"by_token": True, "rows": 8})
               for kind, low, high in (
                   ("tis", 0.0, 1.2), ("icepop", 0.8, 1.3), ("sequence_tis", 0.0, 1.5),
                   ("sequence_mask", 0.6, 1.8), ("seq-mask-tis", 0.93, 1.07),
                   ("rejection", 0.95, 1.05))}
OTHERS = {
    "adv_others": ("adv_others", {"eps": 1e-6}),
    "leave_one_out": ("leave_one_out", {}),
    "adv_reinforce_pp_baseline": ("adv_reinforce_pp_baseline", {}, {"rows": 9}),
    "gae_whitened_population": ("gae_whitened_population", {"gamma": 1.0, "lam": 0.95}),
    "gae_by_length": ("gae_by_length", {"lam": 1.0, "alpha": 0.5}),
    "pair_simpo": ("pair_simpo", {"beta": 2.0, "margin": 0.7}, {"rows": 6}),
    "pair_orpo": ("pair_orpo", {"beta": 0.3}, {"rows": 6}),
    "overlong_penalty": ("overlong_penalty", {"max_length": 16, "buffer": 8, "factor": 0.5}),
}


# -- TRL

def trl_loss(case, **options):
    from trl_losses import grpo_loss

    i = load(case / "inputs.safetensors")
    columns = {"logprobs": i["logp"], "advantages": i["advantages"][:, 0],
               "mask": i["mask"].long(), "old_logprobs": i["old_logp"],
               "ref_logprobs": torch.zeros_like(i["logp"])}
    spec = {"beta": 0.0, "clip_low": 0.2, "clip_high": 0.2,
            "max_response_length": i["mask"].shape[1]}
    kind = options.pop("kind")
    return float(grpo_loss(kind, columns, spec | options))


def check_trl(out):
    """The losses that TRL has, on the cases with one advantage per response."""
    from trl.experimental.gmpo.gmpo_trainer import GMPOTrainer

    found = {
        "policy_gspo_sequence": {"kind": "grpo", "level": "sequence", "clip_low": 0.05,
                        "clip_high": 0.08},
        "policy_cispo_no_floor": {"kind": "cispo", "clip_high": 1.3},
        "policy_sapo": {"kind": "sapo", "sapo_tau": (1.0, 1.05)},
        "policy_gmpo": {"kind": "gmpo", "clip_low": 0.2, "clip_high": 0.3,
                        "trainer": GMPOTrainer},
    }
    for name, options in found.items():
        want = float(load(out / "rl" / name / "outputs.safetensors")["loss"])
        apart = abs(trl_loss(out / "rl" / name, **options) - want)
        assert apart < ALLOWED, (name, apart)
    print(f"  {len(found) + check_trl_pairs(out)} losses are those of TRL's trainers")


def check_trl_pairs(out):
    from trl.experimental.cpo.cpo_trainer import CPOTrainer
    from trl.experimental.orpo.orpo_trainer import ORPOTrainer

    def means(name):
        i = load(out / "rl" / name / "inputs.safetensors")
        return [i[side] / i[f"{side}_lengths"] for side in ("chosen", "rejected")]

    def me(**options):
        found = mock.MagicMock(**options)
        found.accelerator.device = torch.device("cpu")
        return found

    simpo = CPOTrainer.cpo_loss(me(alpha=0.0, loss_type="simpo", beta=2.0, simpo_gamma=0.7,
                                   label_smoothing=0.0), *means("pair_simpo"))[0].mean()
    chosen, rejected = means("pair_orpo")
    orpo = -chosen.mean() - ORPOTrainer.odds_ratio_loss(me(beta=0.3), chosen, rejected)[0].mean()
    for name, got in (("pair_simpo", simpo), ("pair_orpo", orpo)):
        apart = abs(float(got) - float(load(out / "rl" / name / "outputs.safetensors")["loss"]))
        assert apart < ALLOWED, (name, apart)
    return 2


def make(out):
    cases = POLICIES | CORRECTIONS | OTHERS
    for name, (function, params, *shape) in cases.items():
        make_case(out / "rl", name, function, params, *shape, inputs_from=inputs)
    for name in CORRECTIONS:  # a case where nothing or all is cut proves little
        found = load(out / "rl" / name / "outputs.safetensors")
        assert 0.05 < float(found["is_clip_frac"]) < 0.95, (name, found["is_clip_frac"])
    print(f"  {len(cases)} cases")
    check_trl(out)


