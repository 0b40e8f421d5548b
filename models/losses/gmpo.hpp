// Geometric-Mean Policy Optimization (Zhao et al. 2025, arXiv 2507.20673): the
// geometric mean of a response's ratios, each clipped in log space, in place of
// their arithmetic mean, which outliers dominate.
#pragma once

#include "models/losses/policy_term.hpp"

namespace troupe::models {

/// Computes, with d = logprobs - old and s the sign of A:
///   k_t = s min(s d_t, s clip(d_t, -clip.low, clip.high));
///   l_t = -sg(exp(mean of k over the response)) exp(k_t - sg(k_t)) A_t,
/// whose mean over a response (loss_mean: sequence) has value and gradient of
/// -A (product of exp(k))^(1 / length). clip_ratio is of log ratios here, 0.4
/// in the paper. Golden rl/policy_gmpo; verl's geo_mean.
PolicyTerm gmpo_term(const TrainBatch& batch, const LossSettings& settings);

} // namespace troupe::models
