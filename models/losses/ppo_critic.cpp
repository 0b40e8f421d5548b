#include "models/losses/ppo_critic.hpp"

#include "models/losses/token_weights.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace troupe::models {
namespace {

at::Tensor value_loss_T(const TrainBatch& batch, double value_clip) {
  const at::Tensor& returns_T = batch.at("returns");
  const at::Tensor miss_T = batch.values_T - returns_T;
  const at::Tensor square_T = miss_T * miss_T;
  if (value_clip <= 0)
    return square_T * 0.5;
  const at::Tensor& old_T = batch.at("values");
  const at::Tensor clipped_T
    = at::clamp(batch.values_T, old_T - value_clip, old_T + value_clip);
  const at::Tensor clipped_miss_T = clipped_T - returns_T;
  return at::maximum(square_T, clipped_miss_T * clipped_miss_T) * 0.5;
}

double count_clipped_values(const TrainBatch& batch, double value_clip) {
  if (value_clip <= 0)
    return 0;
  const auto limit = static_cast<float>(value_clip);
  const float* now = numbers(batch.values_T);
  const float* old = numbers(batch.at("values"));
  const float* returns = numbers(batch.at("returns"));
  return masked_sum(batch, [&](std::int64_t t) {
    const float clipped = std::clamp(now[t], old[t] - limit, old[t] + limit);
    const float miss = now[t] - returns[t];
    const float clipped_miss = clipped - returns[t];
    return clipped_miss * clipped_miss > miss * miss ? 1.0 : 0.0;
  });
}

} // namespace

LossResult ppo_critic_loss(const TrainBatch& batch,
                           const Denominators& denominators,
                           const LossSettings& settings) {
  const TokenWeights weights = token_weights(batch, denominators, settings);
  LossResult result;
  result.loss
    = at::dot(value_loss_T(batch, settings.value_clip), weights.weights_T);
  add_loss(result.sums, "critic/vf_loss", result.loss.item<float>(), weights);
  const double tokens = masked_count(batch);
  result.sums.add("critic/vf_clipfrac",
                  count_clipped_values(batch, settings.value_clip), tokens);
  const float* values = numbers(batch.values_T);
  result.sums.add("critic/vpred_mean",
                  masked_sum(batch, [&](std::int64_t t) { return values[t]; }),
                  tokens);
  return result;
}

LossEntry ppo_critic_loss_entry() {
  return {.name = "ppo_critic_loss",
          .function = &ppo_critic_loss,
          .exposes = {.values = true},
          .metric_prefix = "critic/",
          .columns = {"values", "returns"},
          .reads = {{"sequence_ids"}, {"loss_mask"}, {"values"}, {"returns"}}};
}

} // namespace troupe::models
