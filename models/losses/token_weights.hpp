// What the token losses share: the weights that make a per-token loss a mean
// over the whole mini-batch, and sums of masked numbers for metrics.
#pragma once

#include "models/loss.hpp"

#include <ATen/core/Tensor.h>

#include <functional>

namespace troupe::models {

/// weights_T sums a micro-batch's share of the mean that `loss_mean` asks for:
/// 1 / tokens, 1 / (sequences * own length) or 1 / (sequences * horizon) of the
/// whole mini-batch.
struct TokenWeights {
  at::Tensor weights_T; ///< f32, 0 where masked
  double whole = 0;     ///< what the mean is over, of the whole mini-batch:
                        ///< tokens, else sequences
  double here = 0;      ///< of this micro-batch
};
TokenWeights token_weights(const TrainBatch& batch,
                           const Denominators& denominators,
                           const LossSettings& settings);

/// Adds the metric of a loss that `weights` summed to `value`.
void add_loss(Sums& sums, const char* name, double value,
              const TokenWeights& weights);

/// Number of unmasked tokens here.
double masked_count(const TrainBatch& batch);
/// Sum of number(t) over unmasked t.
double masked_sum(const TrainBatch& batch,
                  const std::function<double(std::int64_t)>& number);

/// The floats of a [T] tensor without its history.
const float* numbers(const at::Tensor& x_T);

} // namespace troupe::models
