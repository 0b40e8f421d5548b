// Group Sequence Policy Optimization (Zheng et al. 2025, arXiv 2507.18071): one
// ratio per response, so a response is clipped as a whole. In its form per
// token (eq. 13 and 14), which with one advantage per response has the value
// and the gradient of the one per sequence (eq. 5 and 7).
#pragma once

#include "models/losses/policy_term.hpp"

namespace troupe::models {

/// Computes, with s = exp(mean over the response of (logprobs - old)), and sg
/// the number without its gradient:
///   s_t = sg(s) p_t / sg(p_t);
///   l_t = -min(s_t A_t, clip(s_t, 1 - clip.low, 1 + clip.high) A_t).
/// The paper's mean is that of sequences (loss_mean: sequence), its range 3e-4
/// and 4e-4 (section 5.1). Golden rl/policy_gspo*; verl's gspo, TRL's
/// importance_sampling_level sequence.
PolicyTerm gspo_term(const TrainBatch& batch, const LossSettings& settings);

} // namespace troupe::models
