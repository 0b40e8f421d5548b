#include "models/losses/kto.hpp"

#include "models/losses/sequence_sums.hpp"
#include "models/losses/token_weights.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

/// Adds what the sequences of a micro-batch are worth by the policy.
void add_rewards(MetricSums& sums, const at::Tensor& ratios_N,
                 const at::Tensor& points_N, const at::Tensor& desirable_N,
                 double beta) {
  const float* ratios = numbers(ratios_N);
  const float* points = numbers(points_N);
  const float* desirable = numbers(desirable_N);
  for (std::int64_t s = 0; s < ratios_N.size(0); ++s) {
    const bool good = desirable[s] != 0;
    sums.add(good ? "train/desirable_reward" : "train/undesirable_reward",
             beta * double{ratios[s]}, 1);
    sums.add("train/accuracy", (ratios[s] > points[s]) == good ? 1 : 0, 1);
  }
}

} // namespace

LossResult kto_loss(const TrainBatch& batch, const Denominators& denominators,
                    const LossSettings& settings) {
  const PreferenceSettings& preference = settings.preference;
  const at::Tensor ratios_N = sequence_sums_N(
    (batch.logprobs_T - batch.at("ref_logprobs")) * batch.mask_T, batch);
  const at::Tensor points_N = first_entries_N(batch.at("kl_point"), batch);
  const at::Tensor desirable_N = first_entries_N(batch.at("desirable"), batch);
  const at::Tensor sides_N = desirable_N * 2.0 - 1.0;
  const at::Tensor weights_N
    = desirable_N * preference.desirable_weight
      + (1.0 - desirable_N) * preference.undesirable_weight;
  // a sequence without a response is no sequence of the denominator
  const at::Tensor counts_N
    = sequence_sums_N(batch.mask_T, batch).gt(0).to(at::kFloat);
  const at::Tensor values_N
    = at::sigmoid((ratios_N - points_N) * sides_N * preference.beta);
  LossResult result;
  result.loss = ((1.0 - values_N) * weights_N * counts_N).sum()
                * (1.0 / denominators.sequences);
  const double sequences = counts_N.sum().item<float>();
  result.sums.add("train/loss",
                  result.loss.item<float>() * denominators.sequences,
                  sequences);
  add_rewards(result.sums, ratios_N, points_N, desirable_N, preference.beta);
  result.sums.add_total("train/tokens", masked_count(batch));
  return result;
}

LossEntry kto_loss_entry() {
  return {.name = "kto_loss",
          .function = &kto_loss,
          .exposes = {.logprobs = true},
          .metric_prefix = "train/",
          .columns = {"ref_logprobs", "desirable", "kl_point"},
          .reads = {{"sequence_ids"},
                    {"loss_mask"},
                    {"desirable"},
                    {"ref_logprobs"},
                    {"kl_point"}}};
}

} // namespace troupe::models
