#include "models/losses/ppo_actor.hpp"

#include "config/settings/settings.hpp"
#include "models/losses/token_weights.hpp"
#include "models/rl/rl_math.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

/// Returns the per-token policy loss; gradients flow only through logprobs_T.
at::Tensor policy_loss_T(const TrainBatch& batch,
                         const LossSettings& settings) {
  const at::Tensor& advantages_T = batch.at("advantages");
  const at::Tensor ratio_T = at::exp(batch.logprobs_T - batch.at("logprobs"));
  const at::Tensor clipped_T
    = at::clamp(ratio_T, 1.0 - settings.clip_low, 1.0 + settings.clip_high);
  const at::Tensor least_T
    = at::minimum(ratio_T * advantages_T, clipped_T * advantages_T);
  if (settings.dual_clip <= 0)
    return -least_T;
  const at::Tensor bounded_T
    = at::maximum(least_T, advantages_T * settings.dual_clip);
  return -at::where(advantages_T < 0, bounded_T, least_T);
}

/// Returns the estimator of `settings` with its gradient (see rl_math: k3
/// clamped).
at::Tensor kl_loss_T(const TrainBatch& batch, KlEstimator kind) {
  const at::Tensor d_T = batch.logprobs_T - batch.at("ref_logprobs");
  if (kind == KlEstimator::k1)
    return d_T;
  if (kind == KlEstimator::k2)
    return d_T * d_T * 0.5;
  // exp of more than 20 is clamped anyway; inf would turn its 0 into NaN
  const at::Tensor near_T = at::clamp(d_T, -20.0, c10::nullopt);
  return at::clamp(at::exp(-near_T) + near_T - 1.0, -10.0, 10.0);
}

struct PolicyCounts {
  double clipped = 0; ///< tokens whose clipped term is strictly smaller
  double lower = 0;   ///< tokens at the bound of dual clipping
  double kl = 0;      ///< sum of old - logprobs
  double difference = 0;
};

PolicyCounts count_policy(const TrainBatch& batch,
                          const LossSettings& settings) {
  PolicyCounts counts;
  const float* mask = numbers(batch.mask_T);
  const float* now = numbers(batch.logprobs_T);
  const float* old = numbers(batch.at("logprobs"));
  const float* advantage = numbers(batch.at("advantages"));
  const bool recomputed = batch.has("rollout_logprobs");
  const float* rollout
    = recomputed ? numbers(batch.at("rollout_logprobs")) : old;
  const float* trainer = recomputed ? old : now;
  for (std::int64_t t = 0; t < batch.mask_T.numel(); ++t) {
    if (mask[t] == 0)
      continue;
    const float ratio = std::exp(now[t] - old[t]);
    const float plain = ratio * advantage[t];
    const float bound
      = std::clamp(ratio, static_cast<float>(1.0 - settings.clip_low),
                   static_cast<float>(1.0 + settings.clip_high))
        * advantage[t];
    counts.clipped += bound < plain ? 1 : 0;
    const double least = std::min(plain, bound);
    const bool at_bound = settings.dual_clip > 0 && advantage[t] < 0
                          && least < settings.dual_clip * advantage[t];
    counts.lower += at_bound ? 1 : 0;
    counts.kl += double{old[t]} - now[t];
    counts.difference
      += std::abs(std::exp(double{trainer[t]}) - std::exp(double{rollout[t]}));
  }
  return counts;
}

} // namespace

LossResult ppo_actor_loss(const TrainBatch& batch,
                          const Denominators& denominators,
                          const LossSettings& settings) {
  const TokenWeights weights = token_weights(batch, denominators, settings);
  LossResult result;
  const at::Tensor pg_loss
    = at::dot(policy_loss_T(batch, settings), weights.weights_T);
  result.loss = pg_loss;
  add_loss(result.sums, "actor/pg_loss", pg_loss.item<float>(), weights);

  const double tokens = masked_count(batch);
  const PolicyCounts counts = count_policy(batch, settings);
  result.sums.add("actor/pg_clipfrac", counts.clipped, tokens);
  result.sums.add("actor/pg_clipfrac_lower", counts.lower, tokens);
  result.sums.add("actor/ppo_kl", counts.kl, tokens);
  result.sums.add("training/rollout_probs_diff_mean", counts.difference,
                  tokens);
  if (batch.entropy_T.defined()) {
    const float* entropy = numbers(batch.entropy_T);
    result.sums.add(
      "actor/entropy",
      masked_sum(batch, [&](std::int64_t t) { return entropy[t]; }), tokens);
    if (settings.entropy_coef != 0)
      result.loss
        = result.loss
          - at::dot(batch.entropy_T, weights.weights_T) * settings.entropy_coef;
  }
  if (settings.kl_in_loss) {
    const at::Tensor kl
      = at::dot(kl_loss_T(batch, parse_kl_estimator(settings.kl_estimator)),
                weights.weights_T);
    add_loss(result.sums, "actor/kl_loss", kl.item<float>(), weights);
    result.loss = result.loss + kl * settings.kl_coef;
  }
  return result;
}

LossEntry ppo_actor_loss_entry() {
  const auto kl = [](const Settings& s) { return s.algorithm.kl_in == "loss"; };
  return {.name = "ppo_actor_loss",
          .function = &ppo_actor_loss,
          .exposes = {.logprobs = true, .entropy = true},
          .metric_prefix = "actor/",
          .columns
          = {"logprobs", "advantages", "ref_logprobs", "rollout_logprobs"},
          .reads = {{"sequence_ids"},
                    {"loss_mask"},
                    {"logprobs"},
                    {"advantages"},
                    {"ref_logprobs", kl}},
          .carried = {{"kl_coef", &LossSettings::kl_coef}}};
}

} // namespace troupe::models
