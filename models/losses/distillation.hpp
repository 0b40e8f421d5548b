// On-policy distillation: the student's distribution at each token of its own
// response against a teacher's. Only the teacher's K likeliest tokens are known
// here; all others together are one more token in both distributions, so the
// loss is 0 exactly where they agree on these K + 1, and a lower bound of the
// whole divergence (data processing inequality).
//
// Sources: GKD, Agarwal et al. 2024 (arXiv 2306.13649) equations 3 and 4 for
// the divergences; MiniLLM (arXiv 2306.08543) for the reverse one on policy.
#pragma once

#include "models/losses/loss.hpp"

namespace troupe::models {

/// The mean over unmasked tokens of D(student, teacher): with beta 0 KL(t ||
/// s), with beta 1 KL(s || t), else beta KL(t || m) + (1 - beta) KL(s || m) of
/// the mixture m = beta t + (1 - beta) s.
LossResult distillation_loss(const TrainBatch& batch,
                             const Denominators& denominators,
                             const LossSettings& settings);
LossEntry distillation_loss_entry();

} // namespace troupe::models
