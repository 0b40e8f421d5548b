// KL-Cov (Cui et al. 2025, arXiv 2505.22617): the tokens that lower the entropy
// most pay for their distance from the old policy.
#pragma once

#include "models/losses/policy_term.hpp"

namespace troupe::models {

/// Computes, with d = logprobs - old, without clipping:
///   l_t = -exp(d) A_t, + cov_kl_coef |d| for tokens that `cov_tokens` names
/// (models/rl/cov_tokens.hpp). pg_clipfrac is 0. Golden rl/policy_kl_cov.
PolicyTerm kl_cov_term(const TrainBatch& batch, const LossSettings& settings);

} // namespace troupe::models
