// Soft Adaptive Policy Optimization (Gao et al. 2025, arXiv
// 2511.20347): in place of clipping a smooth gate, which closes faster for
// tokens with a negative advantage.
#pragma once

#include "models/losses/policy_term.hpp"

namespace troupe::models {

/// Computes, with r = exp(logprobs - old), tau the temperature for the sign of
/// A (that of the negative one where A = 0):
///   l_t = -4 / tau sigmoid(tau (r - 1)) A_t.
/// The paper's mean is that of sequences; nothing is clipped, so pg_clipfrac is
/// 0. Golden rl/policy_sapo; verl's and TRL's sapo.
PolicyTerm sapo_term(const TrainBatch& batch, const LossSettings& settings);

} // namespace troupe::models
