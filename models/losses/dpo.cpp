#include "models/losses/dpo.hpp"

#include "config/settings/settings.hpp"
#include "models/losses/pair_loss.hpp"
#include "models/losses/sequence_sums.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

/// Returns the mean log-probability of each response.
at::Tensor mean_logprobs_N(const TrainBatch& batch) {
  const at::Tensor lengths_N = sequence_sums_N(batch.mask_T, batch);
  return sequence_sums_N(batch.logprobs_T * batch.mask_T, batch)
         / at::clamp_min(lengths_N, 1.0);
}

at::Tensor log_odds_N(const at::Tensor& means_N) {
  // a response of probability 1 has infinite odds
  const at::Tensor below_N = at::clamp_max(means_N, -1e-6);
  return below_N - at::log1p(-at::exp(below_N));
}

/// Returns the number of each sequence whose gap the loss of a pair reads.
at::Tensor rewards_N(const TrainBatch& batch,
                     const PreferenceSettings& settings) {
  if (settings.kind == "simpo")
    return mean_logprobs_N(batch) * settings.beta;
  if (settings.kind == "orpo")
    return log_odds_N(mean_logprobs_N(batch));
  const at::Tensor ratios_T
    = (batch.logprobs_T - batch.at("ref_logprobs")) * batch.mask_T;
  return sequence_sums_N(ratios_T * settings.beta, batch);
}

/// Returns the loss of a pair from the gap of its rewards, which for dpo and
/// ipo is beta h.
GapLoss gap_loss(const PreferenceSettings& settings) {
  const double beta = settings.beta;
  if (settings.kind == "ipo")
    return [beta](const at::Tensor& gaps_P) {
      const at::Tensor miss_P = gaps_P / beta - 1.0 / (2.0 * beta);
      return miss_P * miss_P;
    };
  if (settings.kind == "simpo")
    return [margin = settings.margin](const at::Tensor& gaps_P) {
      return logistic_gap_loss(gaps_P - margin);
    };
  if (settings.kind == "orpo")
    return [beta](const at::Tensor& gaps_P) {
      return logistic_gap_loss(gaps_P) * beta;
    };
  const double wrong = settings.label_smoothing;
  if (wrong == 0)
    return &logistic_gap_loss;
  return [wrong](const at::Tensor& gaps_P) {
    return logistic_gap_loss(gaps_P) * (1.0 - wrong)
           + logistic_gap_loss(-gaps_P) * wrong;
  };
}

/// Returns the likelihood part of ORPO: -m of the chosen responses, [P].
at::Tensor chosen_loss_P(const TrainBatch& batch) {
  return -mean_logprobs_N(batch).view({-1, 2}).select(1, 0);
}

} // namespace

LossResult dpo_loss(const TrainBatch& batch, const Denominators& denominators,
                    const LossSettings& settings) {
  const PreferenceSettings& preference = settings.preference;
  const GapLoss of_gap = gap_loss(preference);
  const GapLoss of_pair = [&](const at::Tensor& gaps_P) {
    return preference.kind == "orpo" ? of_gap(gaps_P) + chosen_loss_P(batch)
                                     : of_gap(gaps_P);
  };
  return pair_loss(rewards_N(batch, preference), "reward", batch, denominators,
                   of_pair);
}

LossEntry dpo_loss_entry() {
  return {.name = "dpo_loss",
          .function = &dpo_loss,
          .exposes = {.logprobs = true},
          .metric_prefix = "train/",
          .columns = {"ref_logprobs"},
          .pairs = true,
          .reads = {{"chosen_ids"},
                    {"chosen_loss_mask"},
                    {"chosen_ref_logprobs", &compares_with_reference},
                    {"rejected_ids"},
                    {"rejected_loss_mask"},
                    {"rejected_ref_logprobs", &compares_with_reference}}};
}

} // namespace troupe::models
