"""distillation/: the loss of on-policy distillation, by TRL's GKDTrainer, and its gradient
by the student's logits. With fewer tokens than the vocabulary TRL's function gets
distributions in which all others are one more token."""
import os

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch  # noqa: E402
from common import fresh, generator, normal, write_json  # noqa: E402
from trl.experimental.gkd.gkd_trainer import GKDTrainer  # noqa: E402

TOKENS, VOCABULARY = 4, 7
CASES = [(0.0, 7), (1.0, 7), (0.5, 3), (1.0, 2)]


def joined(logits, top):
    """Log-probabilities of the tokens `top`, then of all others together."""
    logprobs = torch.log_softmax(logits, -1)
    picked = logprobs.gather(-1, top)
    if top.shape[-1] == VOCABULARY:
        return picked
    rest = torch.logsumexp(logprobs.scatter(-1, top, float("-inf")), -1, keepdim=True)
    return torch.cat([picked, rest], -1)


def digits(x, count):
    return [round(float(number), count) for number in x.flatten()]


def make(out):
    g = generator("distillation")
    teacher = normal((TOKENS, VOCABULARY), g, 2.0).mul(100).round().div(100).double()
    student = normal((TOKENS, VOCABULARY), g, 2.0).mul(100).round().div(100).double()
    mask = torch.tensor([True, True, False, True])
    labels = torch.where(mask, 0, -100)
    cases = []
    for beta, top_k in CASES:
        x = student.clone().requires_grad_(True)
        top = teacher.topk(top_k, -1).indices
        loss = GKDTrainer.generalized_jsd_loss(joined(x, top), joined(teacher, top), labels, beta)
        loss.backward()
        cases.append({"beta": beta, "top_k": top_k, "loss": float(loss.detach()),
                      "gradient": digits(x.grad, 7)})
    write_json(fresh(out / "distillation") / "meta.json",
               {"tokens": TOKENS, "vocabulary": VOCABULARY, "mask": mask.int().tolist(),
                "teacher": digits(teacher, 2), "student": digits(student, 2), "cases": cases})
    print(f"  {len(cases)} cases")
