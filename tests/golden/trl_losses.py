"""Holds the losses of training/ against TRL's trainers, whose loss functions run here
on the stored log-probabilities. Writes nothing: a difference ends make_golden.py."""
import types
from unittest import mock

import torch
import torch.nn.functional as F
from common import load, read_json, split
from training import next_logprobs, open_model
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.grpo_trainer import GRPOTrainer

ALLOWED = 1e-5


def dense(packed, lengths):
    parts = split(packed, lengths)
    width = max(len(part) for part in parts)
    return torch.stack([F.pad(part, (0, width - len(part))) for part in parts])


def grpo_loss(kind, columns, spec):
    rows, width = columns["mask"].shape
    positive, negative = spec.get("sapo_tau", (1.0, 1.0))
    me = mock.MagicMock(
        top_entropy_quantile=1.0, off_policy_mask_threshold=None, beta=spec["beta"],
        importance_sampling_level=spec.get("level", "token"), loss_type=kind,
        epsilon_low=spec["clip_low"], epsilon_high=spec["clip_high"], use_vllm=False,
        _entropy_bonus_enabled=False,
        aux_loss_enabled=False, max_completion_length=spec["max_response_length"],
        current_gradient_accumulation_steps=1)
    me.args.use_bias_correction_kl, me.args.delta, me.args.steps_per_generation = False, None, 1
    me.args.sapo_temperature_pos, me.args.sapo_temperature_neg = positive, negative
    me.accelerator.num_processes, me.accelerator.gather = 1, lambda x: x
    me._get_per_token_logps_and_entropies = lambda *_, **__: (
        columns["logprobs"], torch.zeros(rows, width), None)
    ids = torch.zeros(rows, width, dtype=torch.long)
    return spec.get("trainer", GRPOTrainer)._compute_loss(me, None, {
        "prompt_ids": ids[:, :1], "prompt_mask": torch.ones_like(ids[:, :1]),
        "completion_ids": ids, "completion_mask": columns["mask"],
        "advantages": columns["advantages"], "old_per_token_logps": columns["old_logprobs"],
        "ref_per_token_logps": columns["ref_logprobs"],
        "num_items_in_batch": columns["mask"].sum()})


def check_grpo(folder):
    data, spec = load(folder / "data.safetensors"), read_json(folder / "meta.json")["spec"]
    scalars, answers = load(folder / "scalars.safetensors"), data["response_lengths"]
    now = load(folder / "tokens.safetensors")["logprobs"]
    columns = {"logprobs": dense(now, answers), "advantages": data["advantages"],
               "mask": dense(torch.ones_like(now, dtype=torch.long), answers),
               "old_logprobs": dense(data["old_logprobs"], answers),
               "ref_logprobs": dense(data["ref_logprobs"], answers)}
    for kind, name in (("grpo", "loss_grpo"), ("bnpo", "loss_token_mean"),
                       ("dapo", "loss_token_mean"), ("dr_grpo", "loss_dr_grpo")):
        apart = abs(float(grpo_loss(kind, columns, spec)) - float(scalars[name]))
        assert apart < ALLOWED, (kind, apart)


def dpo_loss(logprobs, mask, refs, beta):
    me = mock.MagicMock(
        ld_alpha=None, use_weighting=False, aux_loss_enabled=False, precompute_ref_logps=True,
        f_divergence_type="reverse_kl", loss_types=["sigmoid"], loss_weights=[1.0], beta=beta,
        label_smoothing=0.0)
    me.accelerator.device = torch.device("cpu")
    me.accelerator.gather_for_metrics = me.accelerator.gather = lambda x: x
    zero = torch.zeros_like(logprobs)
    out = types.SimpleNamespace(log_probs=logprobs, log_sum_sq_probs=zero, entropy=zero,
                                mean_logits=zero, is_top1=zero.bool(), aux_loss=None)
    return DPOTrainer._compute_loss(me, lambda **_: out, {
        "input_ids": torch.zeros_like(mask), "attention_mask": torch.ones_like(mask),
        "completion_mask": mask, **refs}, False)


def check_dpo(folder):
    data, spec = load(folder / "data.safetensors"), read_json(folder / "meta.json")["spec"]
    model, batch = open_model(folder / "init"), spec["batch"]
    logprobs, masks, refs = [], [], {}
    for side in ("chosen", "rejected"):
        seqs = split(data[f"{side}_tokens"], data[f"{side}_lengths"])[:batch]
        refs[f"ref_{side}_logps"] = data[f"ref_{side}_logps"][:batch]
        with torch.no_grad():
            logprobs += [next_logprobs(model, s) for s in seqs]
        masks += [(torch.arange(len(s)) >= p).long()
                  for s, p in zip(seqs, data["prompt_lengths"])]
    pad = lambda parts: dense(torch.cat(parts), [len(p) for p in parts])  # noqa: E731
    apart = abs(float(dpo_loss(pad(logprobs), pad(masks), refs, spec["beta"]))
                - float(load(folder / "trajectory.safetensors")["loss"][0]))
    assert apart < ALLOWED, apart


def make(out):
    check_grpo(out / "training" / "grpo")
    check_dpo(out / "training" / "dpo")
    print("  TRL's GRPO (four means) and DPO losses are those of training/")
