#include "models/losses/token_weights.hpp"

#include "config/base/error.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace troupe::models {

const float* numbers(const at::Tensor& x_T) {
  TROUPE_CHECK(x_T.defined() && x_T.scalar_type() == at::kFloat
                 && x_T.is_contiguous(),
               "losses read contiguous f32 tensors");
  return x_T.const_data_ptr<float>();
}

TokenWeights token_weights(const TrainBatch& batch,
                           const Denominators& denominators,
                           const LossSettings& settings) {
  const float* own = numbers(batch.mask_T);
  std::vector<std::uint8_t> mask(
    static_cast<std::size_t>(batch.mask_T.numel()));
  for (std::size_t t = 0; t < mask.size(); ++t)
    mask[t] = own[t] != 0 ? 1 : 0;
  const auto weights = loss_weights(settings.mean, mask, batch.cu_seqlens,
                                    {.tokens = denominators.tokens,
                                     .sequences = denominators.sequences,
                                     .horizon = settings.horizon});
  const bool of_tokens = settings.mean == LossMean::token;
  TokenWeights result;
  result.weights_T = at::tensor(at::ArrayRef<float>(weights), at::kFloat);
  result.whole = of_tokens ? denominators.tokens : denominators.sequences;
  for (std::size_t i = 0; i + 1 < batch.cu_seqlens.size(); ++i) {
    double length = 0;
    for (auto t = batch.cu_seqlens[i]; t < batch.cu_seqlens[i + 1]; ++t)
      length += mask[static_cast<std::size_t>(t)];
    result.here += of_tokens ? length : std::min(length, 1.0);
  }
  return result;
}

void add_loss(MetricSums& sums, const char* name, double value,
              const TokenWeights& weights) {
  sums.add(name, value * weights.whole, weights.here);
}

double masked_count(const TrainBatch& batch) {
  return masked_sum(batch, [](std::int64_t) { return 1.0; });
}

double masked_sum(const TrainBatch& batch,
                  const std::function<double(std::int64_t)>& number) {
  const float* own = numbers(batch.mask_T);
  double total = 0;
  for (std::int64_t t = 0; t < batch.mask_T.numel(); ++t)
    if (own[t] != 0)
      total += number(t);
  return total;
}

} // namespace troupe::models
