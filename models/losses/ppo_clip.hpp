// PPO's clipped objective (Schulman et al. 2017, arXiv 1707.06347, eq. 7), with
// a range of two sides (DAPO, Yu et al. 2025, arXiv 2503.14476, eq. 10) and
// dual clipping (Ye et al. 2020, arXiv 1912.09729).
#pragma once

#include "models/losses/policy_term.hpp"

namespace troupe::models {

/// Computes, with r = exp(logprobs - old), A the advantage:
///   l_t = -min(r A, clip(r, 1 - clip.low, 1 + clip.high) A);
///   where dual_clip = c > 0 and A < 0: l_t = -max(that minimum, c A).
/// Golden rl/*policy_loss*, gen_policy_*.
PolicyTerm ppo_clip_term(const TrainBatch& batch, const LossSettings& settings);

} // namespace troupe::models
