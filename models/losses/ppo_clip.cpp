#include "models/losses/ppo_clip.hpp"

#include "models/losses/token_weights.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

/// Returns the per-token policy loss; gradients flow only through logprobs_T.
at::Tensor policy_loss_T(const TrainBatch& batch,
                         const LossSettings& settings) {
  const at::Tensor& advantages_T = batch.at("advantages");
  const at::Tensor ratio_T = token_ratio_T(batch);
  const at::Tensor clipped_T
    = at::clamp(ratio_T, 1.0 - settings.clip.low, 1.0 + settings.clip.high);
  const at::Tensor least_T
    = at::minimum(ratio_T * advantages_T, clipped_T * advantages_T);
  const double dual_clip = settings.policy.dual_clip;
  if (dual_clip <= 0)
    return -least_T;
  const at::Tensor bounded_T = at::maximum(least_T, advantages_T * dual_clip);
  return -at::where(advantages_T < 0, bounded_T, least_T);
}

/// Counts tokens whose clipped term is strictly smaller, and those at the bound
/// of dual clipping.
void count_clipped(const TrainBatch& batch, const LossSettings& settings,
                   PolicyTerm& term) {
  const float* mask = numbers(batch.mask_T);
  const float* now = numbers(batch.logprobs_T);
  const float* old = numbers(batch.at("logprobs"));
  const float* advantage = numbers(batch.at("advantages"));
  const double dual_clip = settings.policy.dual_clip;
  for (std::int64_t t = 0; t < batch.mask_T.numel(); ++t) {
    if (mask[t] == 0)
      continue;
    const float ratio = std::exp(now[t] - old[t]);
    const float plain = ratio * advantage[t];
    const float bound
      = std::clamp(ratio, static_cast<float>(1.0 - settings.clip.low),
                   static_cast<float>(1.0 + settings.clip.high))
        * advantage[t];
    term.clipped += bound < plain ? 1 : 0;
    const double least = std::min(plain, bound);
    const bool at_bound
      = dual_clip > 0 && advantage[t] < 0 && least < dual_clip * advantage[t];
    term.lower += at_bound ? 1 : 0;
  }
}

} // namespace

PolicyTerm ppo_clip_term(const TrainBatch& batch,
                         const LossSettings& settings) {
  PolicyTerm term{.loss_T = policy_loss_T(batch, settings)};
  count_clipped(batch, settings, term);
  return term;
}

} // namespace troupe::models
