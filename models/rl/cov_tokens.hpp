// Tokens that Clip-Cov and KL-Cov treat apart (Cui et al. 2025, arXiv
// 2505.22617): those whose log-probability and advantage vary together most, as
// raising these lowers the entropy most. They are chosen once per step over its
// whole batch, from the old log-probabilities, so that the choice does not
// depend on micro-batches or plan (I1); the paper chooses per mini-batch, from
// the current ones, which are the same in the first.
#pragma once

#include "models/rl/functions.hpp"
#include "models/rl/rollout_batch.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::models {

/// Returns (logprobs - mean) (advantages - mean) at each unmasked token, means
/// over all of these; 0 elsewhere.
std::vector<double> token_covariances(std::span<const float> logprobs_T,
                                      std::span<const float> advantages_T,
                                      Mask mask_T);
/// Returns the indices of the `count` unmasked tokens with the largest
/// covariances, earlier ones first among equals (KL-Cov).
std::vector<std::size_t> largest_covariances(std::span<const double> cov_T,
                                             Mask mask_T, std::size_t count);

/// Adds cov_tokens f32[L]: 1 at the chosen tokens, max(1, cov_share of all
/// response tokens). kl_cov takes the largest covariances; clip_cov draws among
/// those inside cov_range, by numbers that depend on seed, step, sample and
/// token alone (I2, I8).
void add_cov_tokens(net::Rows& rows, const RolloutBatch& batch,
                    std::span<const float> advantages_T,
                    std::span<const float> logprobs_T,
                    const FunctionContext& context);

} // namespace troupe::models
