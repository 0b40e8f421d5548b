// CISPO (MiniMax-M1, arXiv 2506.13585, eq. 4 and 5): the ratio is a weight
// without a gradient and is clipped as such, so no token loses its gradient.
#pragma once

#include "models/losses/policy_term.hpp"

namespace troupe::models {

/// Computes, with r = exp(logprobs - old), and sg the number without its
/// gradient:
///   l_t = -sg(clip(r, 1 - clip.low, 1 + clip.high)) A_t logprobs_t.
/// With clip.low 1 a ratio has no lower bound, as in the paper. pg_clipfrac is
/// the share of clipped ratios. Golden rl/policy_cispo*; verl's and TRL's
/// cispo (TRL's epsilon_high is 1 + clip.high).
PolicyTerm cispo_term(const TrainBatch& batch, const LossSettings& settings);

} // namespace troupe::models
