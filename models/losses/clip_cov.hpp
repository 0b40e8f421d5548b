// Clip-Cov (Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning
// for Reasoning Language Models", arXiv 2505.22617): a few of the tokens that
// lower the entropy most get no gradient.
#pragma once

#include "models/losses/policy_term.hpp"

namespace troupe::models {

/// Computes PPO's clipped term, and 0 for tokens that `cov_tokens` names
/// (models/rl/cov_tokens.hpp chooses them over the batch of a step, so that any
/// split trains alike). pg_clipfrac is their share. Golden rl/policy_clip_cov.
PolicyTerm clip_cov_term(const TrainBatch& batch, const LossSettings& settings);

} // namespace troupe::models
