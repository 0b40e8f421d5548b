// Common code of token losses: the weights that make a per-token loss a mean
// over the whole mini-batch, and sums of masked numbers for metrics.
#pragma once

#include "models/losses/loss.hpp"

#include <ATen/core/Tensor.h>

#include <functional>

namespace troupe::models {

/// Weights that sum a micro-batch's share of the mean that `loss_mean` selects:
/// 1 / tokens, 1 / (sequences * own length) or 1 / (sequences * horizon) of the
/// whole mini-batch.
struct TokenWeights {
  at::Tensor weights_T; ///< f32, 0 where masked
  double whole = 0;     ///< tokens, else sequences, of the mini-batch
  double here = 0;      ///< of this micro-batch
};
TokenWeights token_weights(const TrainBatch& batch,
                           const Denominators& denominators,
                           const LossSettings& settings);

/// Adds the metric of a loss that `weights` summed to `value`.
void add_loss(MetricSums& sums, const char* name, double value,
              const TokenWeights& weights);

/// Returns the number of unmasked tokens in this micro-batch.
double masked_count(const TrainBatch& batch);
/// Returns the sum of number(t) over unmasked t.
double masked_sum(const TrainBatch& batch,
                  const std::function<double(std::int64_t)>& number);

/// Returns the floats of a [T] tensor without its autograd history.
const float* numbers(const at::Tensor& x_T);

} // namespace troupe::models
