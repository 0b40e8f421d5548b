"""The functions of workflow.yaml: what the program beside it does in C++. Values
come as numpy arrays that must not be changed; a new one is returned."""
import numpy as np

KIND = ("kind", "fresh", "warm", "good", "happy")


def check(response):
    """One sample: its text in, a number out."""
    return any(word in response for word in KIND)


def pick_best(tool_score):
    """The samples of one prompt: 1 for the first best, all 0 if none passed."""
    keep = np.zeros_like(tool_score)
    best = tool_score.argmax()
    keep[best] = tool_score[best] > 0
    return keep


def only_kept(loss_mask, keep):
    """One sample: a number per token. No token of the others is trained on."""
    return loss_mask * (keep > 0)
