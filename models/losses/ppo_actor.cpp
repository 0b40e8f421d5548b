#include "models/losses/ppo_actor.hpp"

#include "config/settings/settings.hpp"
#include "models/losses/correction.hpp"
#include "models/losses/policy_term.hpp"
#include "models/losses/token_weights.hpp"
#include "models/rl/rl_math.hpp"

#include <ATen/ATen.h>

#include <cmath>

namespace troupe::models {
namespace {

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

struct PolicyDistance {
  double kl = 0;         ///< sum of old - logprobs
  double difference = 0; ///< sum of |p - p'| of sampler and trainer
  double gap = 0;        ///< sum of |log p - log p'| of both
};

PolicyDistance distance_of(const TrainBatch& batch) {
  PolicyDistance sums;
  const float* mask = numbers(batch.mask_T);
  const float* now = numbers(batch.logprobs_T);
  const float* old = numbers(batch.at("logprobs"));
  const bool recomputed = batch.has("rollout_logprobs");
  const float* rollout
    = recomputed ? numbers(batch.at("rollout_logprobs")) : old;
  const float* trainer = recomputed ? old : now;
  for (std::int64_t t = 0; t < batch.mask_T.numel(); ++t) {
    if (mask[t] == 0)
      continue;
    sums.kl += double{old[t]} - now[t];
    sums.difference
      += std::abs(std::exp(double{trainer[t]}) - std::exp(double{rollout[t]}));
    sums.gap += std::abs(double{trainer[t]} - rollout[t]);
  }
  return sums;
}

/// Adds the numbers of a policy term and of the policies' distance.
void add_policy_metrics(MetricSums& sums, const PolicyTerm& term,
                        const TrainBatch& batch) {
  const double tokens = masked_count(batch);
  const PolicyDistance distance = distance_of(batch);
  sums.add("actor/pg_clipfrac", term.clipped, tokens);
  sums.add("actor/pg_clipfrac_lower", term.lower, tokens);
  sums.add("actor/ppo_kl", distance.kl, tokens);
  sums.add("training/rollout_probs_diff_mean", distance.difference, tokens);
  sums.add("actor/rollout_logprob_gap", distance.gap, tokens);
}

} // namespace

LossResult ppo_actor_loss(const TrainBatch& batch,
                          const Denominators& denominators,
                          const LossSettings& settings) {
  const TokenWeights weights = token_weights(batch, denominators, settings);
  LossResult result;
  PolicyTerm term = policy_term(batch, settings);
  if (settings.correction.kind != CorrectionKind::none)
    term.loss_T
      = term.loss_T
        * correction_weights_T(batch, settings.correction, result.sums);
  const at::Tensor pg_loss = at::dot(term.loss_T, weights.weights_T);
  result.loss = pg_loss;
  add_loss(result.sums, "actor/pg_loss", pg_loss.item<float>(), weights);
  add_policy_metrics(result.sums, term, batch);
  if (batch.entropy_T.defined()) {
    const float* entropy = numbers(batch.entropy_T);
    result.sums.add(
      "actor/entropy",
      masked_sum(batch, [&](std::int64_t t) { return entropy[t]; }),
      masked_count(batch));
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
  const auto corrects = [](const Settings& s) {
    return s.algorithm.correction.kind != "none"
           && s.algorithm.old_logprobs == "recompute";
  };
  const auto masks
    = [](const Settings& s) { return s.algorithm.loss.sampling_mask; };
  const auto replays
    = [](const Settings& s) { return s.algorithm.loss.routing_replay; };
  return {.name = "ppo_actor_loss",
          .function = &ppo_actor_loss,
          .exposes = {.logprobs = true, .entropy = true},
          .metric_prefix = "actor/",
          .columns = {"logprobs", "advantages", "ref_logprobs",
                      "rollout_logprobs", "cov_tokens"},
          .reads = {{"sequence_ids"},
                    {"loss_mask"},
                    {"logprobs"},
                    {"advantages"},
                    {"ref_logprobs", kl},
                    {"rollout_logprobs", corrects},
                    {"cov_tokens", &chooses_cov_tokens},
                    {"kept_counts", masks},
                    {"kept_ids", masks},
                    {"routed_experts", replays}},
          .carried = {{"kl_coef", &LossSettings::kl_coef}}};
}

} // namespace troupe::models
