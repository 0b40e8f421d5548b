"""rl/: advantages, divergences, losses, balanced bins and regions.

Formulas in float64 with gradients from autograd, written here from their papers.
`--second DIR` of make_golden.py holds every formula against cases that other
projects' own functions gave."""
import torch
import torch.nn.functional as F
from common import cu, describe, fresh, generator, ints, load, normal, read_json, save, write_json

FORMULAS = {}


def formula(f):
    FORMULAS[f.__name__] = f
    return f


def masked_mean(x, mask):
    return (x * mask).sum() / mask.sum()


def whitened(x, mask, shift_mean=True):
    """Zero mean and unit variance (n - 1) over the mask."""
    n = mask.sum()
    mean = (x * mask).sum() / (n + 1e-8)
    variance = (((x - mean) ** 2) * mask).sum() / (n + 1e-8) * n / (n - 1)
    out = (x - mean) * torch.rsqrt(variance + 1e-8)
    return out if shift_mean else out + mean


def gae_of(rewards, values, mask, gamma, lam, after=None):
    advantages = torch.zeros_like(rewards)
    for i, row in enumerate(rewards):
        value = torch.zeros(()) if after is None else after[i]
        sum_to_come = torch.zeros(())
        for t in reversed(range(len(row))):
            if mask[i, t] == 0:
                continue  # padding, or another speaker's tokens
            delta = row[t] + gamma * value - values[i, t]
            sum_to_come = delta + gamma * lam * sum_to_come
            value = values[i, t]
            advantages[i, t] = sum_to_come
    return {"advantages": advantages, "returns": (advantages + values) * mask}


@formula
def gae(rewards, values, mask, gamma, lam):
    return gae_of(rewards, values, mask, gamma, lam)


@formula
def gae_bootstrap(rewards, values, mask, truncated, bootstrap_values, gamma, lam):
    return gae_of(rewards, values, mask, gamma, lam, bootstrap_values * truncated)


@formula
def gae_whitened(rewards, values, mask, gamma, lam):
    found = gae_of(rewards, values, mask, gamma, lam)["advantages"]
    return {"advantages": whitened(found, mask) * mask}


@formula
def gae_packed(rewards, values, cu_seqlens, gamma, lam, bootstrap):
    """`values` has one entry more per sequence: the value after the last token."""
    parts = []
    for i, (a, b) in enumerate(zip(cu_seqlens.tolist(), cu_seqlens.tolist()[1:])):
        own = values[a + i:b + i + 1]
        parts.append(gae_of(rewards[None, a:b], own[None, :-1], torch.ones(1, b - a), gamma, lam,
                            own[-1:] if bootstrap else None))
    return {k: torch.cat([part[k][0] for part in parts]) for k in parts[0]}


@formula
def whiten(x, mask, shift_mean):
    return {"y": whitened(x, mask, shift_mean) * mask}


def estimate(logp, ref_logp, kind):
    apart = logp - ref_logp
    if kind == "k1":
        return apart
    return apart ** 2 / 2 if kind == "k2" else (torch.exp(-apart) + apart - 1).clamp(-10, 10)


@formula
def kl(logp, ref_logp, kind):
    return {"kl": estimate(logp, ref_logp, kind)}


@formula
def kl_grad(logp, ref_logp, kind):
    x = logp.clone().requires_grad_(True)
    estimate(x, ref_logp, kind).sum().backward()
    return {"dlogp": x.grad}


def mean_of(x, mask, mode):
    sums, lengths = (x * mask).sum(-1), mask.sum(-1)
    return {"token-mean": lambda: sums.sum() / mask.sum(),
            "seq-mean-token-sum": sums.mean,
            "seq-mean-token-mean": lambda: (sums / (lengths + 1e-8)).mean(),
            "seq-mean-token-sum-norm": lambda: sums.sum() / x.shape[-1],
            "dr-grpo": lambda: sums.sum() / len(x) / x.shape[-1]}[mode]()


@formula
def loss_aggregation(mat, mask, mode):
    return {"loss": mean_of(mat, mask, mode)}


def with_gradient(loss_of, at, name):
    x = at.clone().requires_grad_(True)
    out = loss_of(x)
    out["loss"].backward()
    return {k: v.detach() for k, v in out.items()} | {name: x.grad}


@formula
def policy_loss(logp, old_logp, advantages, mask, eps_low, eps_high, dual_clip=None,
                agg="token-mean"):
    def loss_of(x):
        ratio = torch.exp(x - old_logp)
        plain, clipped = ratio * advantages, ratio.clamp(1 - eps_low, 1 + eps_high) * advantages
        kept = torch.minimum(plain, clipped)
        if dual_clip is not None:
            kept = torch.where(advantages < 0, torch.maximum(kept, dual_clip * advantages), kept)
        return {"loss": mean_of(-kept, mask, agg), "approx_kl": masked_mean(old_logp - x, mask),
                "clip_ratio": masked_mean((clipped < plain).double(), mask)}

    return with_gradient(loss_of, logp, "dlogp")


@formula
def value_loss(values, old_values, returns, mask, eps, half):
    def loss_of(x):
        near = x.clamp(old_values - eps, old_values + eps)
        a, b = (x - returns) ** 2, (near - returns) ** 2
        return {"loss": (0.5 if half else 1.0) * masked_mean(torch.maximum(a, b), mask),
                "clipfrac": masked_mean((b > a).double(), mask)}

    return with_gradient(loss_of, values, "dvalues")


def by_group(scores, group, one):
    out = torch.zeros_like(scores)
    for k in group.unique().tolist():
        out[group == k] = one(scores[group == k])
    return {"adv": out}


@formula
def adv_grpo(scores, group, eps=1e-6):
    return by_group(scores, group, lambda s: (s - s.mean()) / (s.std() + eps) if len(s) > 1
                    else s / (1 + eps))


@formula
def adv_dr_grpo(scores, group):
    return by_group(scores, group, lambda s: s - s.mean() if len(s) > 1 else s)


@formula
def adv_rloo(scores, group):
    return by_group(scores, group, lambda s: s - (s.sum() - s) / (len(s) - 1) if len(s) > 1 else s)


@formula
def adv_reinforce_pp(token_rewards, mask, gamma):
    to_come, out = torch.zeros(len(mask), dtype=torch.double), torch.zeros_like(token_rewards)
    for t in reversed(range(mask.shape[1])):
        to_come = token_rewards[:, t] + gamma * to_come
        out[:, t] = to_come
        to_come = to_come * mask[:, t]
    return {"adv": whitened(out, mask) * mask}


@formula
def adv_remax(token_rewards, mask, baseline):
    to_come = (token_rewards * mask).flip(-1).cumsum(-1).flip(-1)
    return {"adv": to_come - baseline[:, None] * mask}


@formula
def dpo(pc, pr, rc, rj, beta, label_smoothing=0.0, ipo=False):
    """Policy chosen and rejected, reference chosen and rejected."""
    h = (pc - pr) - (rc - rj)
    loss = ((h - 1 / (2 * beta)) ** 2 if ipo else -(1 - label_smoothing) * F.logsigmoid(beta * h)
            - label_smoothing * F.logsigmoid(-beta * h))
    return {"loss": loss.mean(), "chosen_rewards": beta * (pc - rc),
            "rejected_rewards": beta * (pr - rj)}


@formula
def reward_pair(chosen, rejected):
    return {"loss": -F.logsigmoid(chosen - rejected).mean()}


@formula
def kl_in_reward(score, kl, mask, kl_coef, clip):
    out = -kl_coef * kl
    for i, row in enumerate(mask):
        out[i, int(row.nonzero().max())] += score[i].clamp(*clip)
    return {"rewards": out}


@formula
def logprob_entropy(logits, labels):
    logp = torch.log_softmax(logits, -1)
    return {"logp": logp.gather(-1, labels[..., None])[..., 0],
            "entropy": -(logp.exp() * logp).sum(-1)}


@formula
def masked_entropy_loss(logits, labels, mask, entropy_coef):
    def loss_of(x):
        own = logprob_entropy(x, labels)
        return {"loss": masked_mean(-own["logp"] - entropy_coef * own["entropy"], mask),
                "nll": masked_mean(-own["logp"], mask),
                "entropy": masked_mean(own["entropy"], mask)}

    return with_gradient(loss_of, logits, "dlogits")


@formula
def adaptive_kl(kl, init, target, horizon, n_steps):
    coefficient, out = init, []
    for one in kl.tolist():
        coefficient *= 1 + min(max(one / target - 1, -0.2), 0.2) * n_steps / horizon
        out.append(coefficient)
    return {"coef": torch.tensor(out, dtype=torch.double)}


# -- inputs

def ragged_mask(g, rows, width, gaps=False):
    lengths = ints(1, width + 1, rows, g)
    lengths[0] = width
    at = torch.arange(width)[None]
    mask = at < lengths[:, None]
    if gaps:
        hole = torch.rand(rows, width, generator=g) < 0.3
        mask &= ~(hole & (at > 0) & (at < lengths[:, None] - 1))
    return mask.float()


def inputs_of(function, g, rows=5, width=11, gaps=False, spread=0.5):
    mask = ragged_mask(g, rows, width, gaps)
    logp = normal((rows, width), g, 0.3) - 1.2
    noise = lambda scale=1.0: normal((rows, width), g, scale)  # noqa: E731
    row = lambda scale=1.0: normal((rows,), g, scale)  # noqa: E731
    if function == "gae_packed":
        lengths = mask.sum(-1).long().tolist()
        return {"rewards": normal((sum(lengths),), g), "values": normal((sum(lengths) + rows,), g),
                "cu_seqlens": cu(lengths)}
    if function.startswith("gae"):
        found = {"rewards": noise(0.3) * mask, "values": noise() * mask, "mask": mask}
        return found | ({"truncated": (torch.arange(rows) % 2 == 0).float(),
                         "bootstrap_values": row()} if function == "gae_bootstrap" else {})
    if function.startswith("adv_re"):
        found = {"token_rewards": noise(0.3) * mask, "mask": mask}
        return found | ({"baseline": row()} if function == "adv_remax" else {})
    if function.startswith("adv_"):
        group = torch.arange(rows * 4) // 4
        scores = (normal((rows * 4,), g, 2) * 2).round() / 2
        scores[4:8] = 1.0  # a group without spread
        order = torch.randperm(rows * 4, generator=g)
        return {"scores": scores[order], "group": group[order]}
    labels = lambda size: ints(0, size, rows * width, g).view(rows, width)  # noqa: E731
    return {
        "whiten": lambda: {"x": noise() * 3 + 1, "mask": mask},
        "kl": lambda: {"logp": logp, "ref_logp": logp + noise(spread)},
        "kl_grad": lambda: {"logp": logp, "ref_logp": logp + noise(spread)},
        "loss_aggregation": lambda: {"mat": noise(), "mask": mask},
        "policy_loss": lambda: {"logp": logp, "old_logp": logp + noise(0.4),
                                "advantages": noise(1.5), "mask": mask},
        "value_loss": lambda: {"values": logp, "old_values": logp + noise(0.3),
                               "returns": logp + noise(), "mask": mask},
        "dpo": lambda: {k: row(3.0) - 20 for k in ("pc", "pr", "rc", "rj")},
        "reward_pair": lambda: {"chosen": row(4.0), "rejected": row(4.0)},
        "kl_in_reward": lambda: {"score": row(12.0), "kl": noise(0.4), "mask": mask},
        "logprob_entropy": lambda: {"logits": normal((rows, width, 17), g, 4),
                                    "labels": labels(17)},
        "masked_entropy_loss": lambda: {"logits": normal((rows, width, 13), g, 2),
                                        "labels": labels(13), "mask": mask},
        "adaptive_kl": lambda: {"kl": torch.rand(rows, generator=g).double() * 12},
    }[function]()


PPO = {"eps_low": 0.2, "eps_high": 0.2, "dual_clip": None, "agg": "token-mean"}
CASES = {
    "gae_g1.0_l0.95": ("gae", {"gamma": 1.0, "lam": 0.95}),
    "gae_g1.0_l1.0": ("gae", {"gamma": 1.0, "lam": 1.0}),
    "gae_g0.97_l0.9": ("gae", {"gamma": 0.97, "lam": 0.9}),
    "gae_g0.99_l0.0": ("gae", {"gamma": 0.99, "lam": 0.0}),
    "gae_gaps": ("gae", {"gamma": 0.97, "lam": 0.9}, {"gaps": True, "width": 17}),
    "gae_truncated_bootstrap": ("gae_bootstrap", {"gamma": 0.99, "lam": 0.95}),
    "gae_whitened_g1.0_l0.95": ("gae_whitened", {"gamma": 1.0, "lam": 0.95}),
    "gae_whitened_g0.97_l0.9": ("gae_whitened", {"gamma": 0.97, "lam": 0.9}),
    "gae_whitened_gaps": ("gae_whitened", {"gamma": 0.99, "lam": 0.9}, {"gaps": True}),
    "gae_packed": ("gae_packed", {"gamma": 0.97, "lam": 0.9, "bootstrap": False}),
    "gae_packed_bootstrap": ("gae_packed", {"gamma": 0.98, "lam": 0.9, "bootstrap": True}),
    "whiten": ("whiten", {"shift_mean": True}),
    "whiten_keep_mean": ("whiten", {"shift_mean": False}),
    "kl_k1": ("kl", {"kind": "k1"}), "kl_k2": ("kl", {"kind": "k2"}),
    "kl_k3": ("kl", {"kind": "k3"}), "gen_kl_k3_far": ("kl", {"kind": "k3"}, {"spread": 4.0}),
    "kl_k1_grad": ("kl_grad", {"kind": "k1"}), "kl_k2_grad": ("kl_grad", {"kind": "k2"}),
    "kl_k3_grad": ("kl_grad", {"kind": "k3"}),
    "gen_kl_k3_far_grad": ("kl_grad", {"kind": "k3"}, {"spread": 2.0}),
    "agg_token-mean": ("loss_aggregation", {"mode": "token-mean"}),
    "agg_seq-mean-token-sum": ("loss_aggregation", {"mode": "seq-mean-token-sum"}),
    "agg_seq-mean-token-mean": ("loss_aggregation", {"mode": "seq-mean-token-mean"}),
    "agg_seq-mean-token-sum-norm": ("loss_aggregation", {"mode": "seq-mean-token-sum-norm"}),
    "policy_loss_ppo": ("policy_loss", PPO),
    "policy_loss_clip_higher": ("policy_loss", PPO | {"eps_high": 0.28}),
    "policy_loss_dual_clip": ("policy_loss", PPO | {"dual_clip": 3.0}),
    "gen_policy_dapo": ("policy_loss", PPO | {"eps_high": 0.28, "dual_clip": 10.0}),
    "gen_policy_dual_clip_tight": ("policy_loss", PPO | {"eps_low": 0.1, "eps_high": 0.1,
                                                         "dual_clip": 1.5}),
    "gen_policy_seq_mean": ("policy_loss", PPO | {"agg": "seq-mean-token-mean"}),
    "gen_policy_dr_grpo": ("policy_loss", PPO | {"agg": "dr-grpo"}),
    "value_loss_clipped": ("value_loss", {"eps": 0.2, "half": True}),
    "gen_value_loss_full": ("value_loss", {"eps": 0.1, "half": False}),
    "adv_grpo": ("adv_grpo", {"eps": 1e-6}), "adv_rloo": ("adv_rloo", {}),
    "adv_dr_grpo": ("adv_dr_grpo", {}),
    "gen_adv_grpo_shuffled": ("adv_grpo", {"eps": 1e-4}, {"rows": 6}),
    "gen_adv_rloo_shuffled": ("adv_rloo", {}, {"rows": 6}),
    "gen_adv_dr_grpo_shuffled": ("adv_dr_grpo", {}, {"rows": 6}),
    "adv_remax": ("adv_remax", {}), "gen_adv_remax_tokens": ("adv_remax", {}, {"width": 16}),
    "adv_reinforce_pp": ("adv_reinforce_pp", {"gamma": 1.0}),
    "gen_adv_reinforce_pp_discount": ("adv_reinforce_pp", {"gamma": 0.95}),
    "dpo_b0.1_ls0.0_ipoFalse": ("dpo", {"beta": 0.1, "label_smoothing": 0.0, "ipo": False}),
    "dpo_b0.1_ls0.2_ipoFalse": ("dpo", {"beta": 0.1, "label_smoothing": 0.2, "ipo": False}),
    "dpo_b0.1_ls0.0_ipoTrue": ("dpo", {"beta": 0.1, "label_smoothing": 0.0, "ipo": True}),
    "rm_pairwise": ("reward_pair", {}),
    "token_reward_kl_in_reward": ("kl_in_reward", {"kl_coef": 0.05, "clip": [-10, 10]}),
    "token_logprob_entropy": ("logprob_entropy", {}),
    "gen_masked_entropy_loss": ("masked_entropy_loss", {"entropy_coef": 0.01}),
    "adaptive_kl_ctl": ("adaptive_kl", {"init": 0.2, "target": 6.0, "horizon": 10000,
                                        "n_steps": 256}, {"rows": 9}),
}
# Sums of squares under a root lose digits that a sum does not.
WIDE = ("gae_whitened", "gae_whitened_population", "whiten", "adv_reinforce_pp",
        "adv_reinforce_pp_baseline")


def evaluated(function, inputs, params):
    doubles = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}
    return FORMULAS[function](**doubles, **params)


def make_case(out, name, function, params, shape=None, inputs_from=inputs_of):
    folder = fresh(out, name)
    inputs = {k: v.contiguous() for k, v in
              inputs_from(function, generator("rl", name), **(shape or {})).items()}
    outputs = {k: v if function == "adaptive_kl" else v.float()
               for k, v in evaluated(function, inputs, params).items()}
    assert all(torch.isfinite(v).all() for v in outputs.values()), name
    save(folder / "inputs.safetensors", inputs)
    save(folder / "outputs.safetensors", outputs)
    tolerance = 1e-9 if function == "adaptive_kl" else 1e-4 if function in WIDE else 1e-5
    describe(folder, FORMULAS[function].__doc__ or function, function=function, params=params,
             tolerance_abs=tolerance)


# -- bins and regions

def karmarkar_karp(lengths, bins):
    """The largest differencing method with k bins; of equals the one with the larger
    first bin goes first, a bin being its sum, its size and its entries."""
    empty = (0, 0, [])
    parts = [[(length, 1, [i])] + [empty] * (bins - 1) for i, length in enumerate(lengths)]
    while len(parts) > 1:
        parts.sort(key=lambda own: (own[0][0] - own[-1][0], own[0]))
        a, b = parts.pop(), parts.pop()
        joined = [(x[0] + y[0], x[1] + y[1], x[2] + y[2]) for x, y in zip(a, reversed(b))]
        parts.append(sorted(joined, reverse=True))
    return [sorted(entries) for _, _, entries in parts[0]]


def boxes(shape, ranks, mesh, placement):
    """What each rank holds; along a mesh axis a dimension is cut as torch.chunk cuts."""
    grid, found = torch.tensor(ranks).reshape(mesh), {}
    for rank in ranks:
        place = [int(x) for x in (grid == rank).nonzero()[0]]
        box = [[0, n] for n in shape]
        for axis, dim in enumerate(placement):
            if dim is not None:
                parts = torch.arange(*box[dim]).chunk(mesh[axis])
                own = parts[place[axis]] if place[axis] < len(parts) else None
                box[dim] = ([box[dim][1]] * 2 if own is None
                            else [int(own[0]), int(own[-1]) + 1])
        found[str(rank)] = box
    return found


RESHARDINGS = {
    "reshard_fsdp8_to_d2t4_columns": ([16, 24], list(range(8)), [8], [0], list(range(8)), [2, 4],
                                      [None, 1]),
    "reshard_t2d2_to_t4": ([12, 8], [0, 1, 2, 3], [2, 2], [None, 0], [0, 1, 2, 3], [4], [0]),
    "reshard_uneven": ([10], [0, 1, 2, 3], [4], [0], [4, 5, 6], [3], [0]),
    "reshard_two_axes": ([9, 7], [0, 1, 2, 3], [2, 2], [0, 1], [4, 5, 6, 7, 8], [5], [1]),
    "reshard_same": ([8, 4], [0, 1, 2, 3], [4], [0], [0, 1, 2, 3], [2, 2], [0, 0]),
}


def make_bins(out):
    lengths = ints(100, 4100, 61, generator("lengths")).tolist()
    folder = fresh(out, "karmarkar_karp")
    write_json(folder / "case.json", {"inputs": {"lens": lengths}, "params": {"k": 8},
                                      "outputs": {"partitions": karmarkar_karp(lengths, 8)}})
    for name, (shape, *both) in RESHARDINGS.items():
        source, target = both[:3], both[3:]
        write_json(fresh(out, name) / "case.json", {
            "inputs": {"shape": shape},
            "outputs": {"src_regions": boxes(shape, *source),
                        "dst_regions": boxes(shape, *target)}})


def make(out):
    for name, case in CASES.items():
        make_case(out / "rl", name, *case)
    make_bins(out / "rl")
    print(f"  {len(CASES)} cases, {1 + len(RESHARDINGS)} of bins and regions")


def compare(second):
    """Our formulas on the cases of another golden folder."""
    count = 0
    for folder in sorted((second / "rl").iterdir()):
        if not (folder / "outputs.safetensors").exists():
            continue
        meta = read_json(folder / "meta.json")
        if meta.get("function") not in FORMULAS:
            continue
        got = evaluated(meta["function"], load(folder / "inputs.safetensors"), meta["params"])
        for name, want in load(folder / "outputs.safetensors").items():
            if name in got:  # a formula may give less
                worst = float((got[name].double() - want.double()).abs().max())
                assert worst <= meta["tolerance_abs"], (folder.name, name, worst)
        count += 1
    case = read_json(second / "rl" / "karmarkar_karp" / "case.json")
    assert karmarkar_karp(case["inputs"]["lens"], case["params"]["k"]) == \
        case["outputs"]["partitions"]
    for folder in (second / "rl").glob("reshard_*"):
        case = read_json(folder / "case.json")
        for side in ("src", "dst"):
            i = case["inputs"]
            assert boxes(i["shape"], i[f"{side}_ranks"], i[f"{side}_mesh"],
                         i[f"{side}_placement"]) == case["outputs"][f"{side}_regions"]
    print(f"golden: our formulas give {count} cases of {second}, its bins and its regions")
