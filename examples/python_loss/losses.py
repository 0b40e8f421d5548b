"""The loss of workflow.yaml: PPO's clipped surrogate, in torch. The batch holds whole
sequences of a micro-batch; sums over it are divided by a number of the whole
mini-batch, so the gradient does not depend on how that was cut."""
import torch

CLIP = 0.2


def ppo_clip(batch):
    """-sum_t mask_t min(r_t A_t, clip(r_t) A_t) / tokens, and its metrics."""
    advantages = batch["advantages"]
    ratio = torch.exp(batch.logprobs - batch["old"])
    clipped = ratio.clamp(1 - CLIP, 1 + CLIP) * advantages
    gain = torch.minimum(ratio * advantages, clipped)
    loss = -(gain * batch.mask).sum() / batch.denominator
    cut = (clipped < ratio * advantages) * batch.mask
    return loss, {"clipfrac": cut.sum()}
