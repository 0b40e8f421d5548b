#include "models/losses/pair_loss.hpp"

#include "models/losses/token_weights.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

at::Tensor logistic_gap_loss(const at::Tensor& gaps_P) {
  return -at::log_sigmoid(gaps_P);
}

LossResult pair_loss(const at::Tensor& values_N, const std::string& name,
                     const TrainBatch& batch, const Denominators& denominators,
                     const GapLoss& loss_of) {
  const at::Tensor values_PC = values_N.view({-1, 2}); // C: chosen first
  const at::Tensor gaps_P = values_PC.select(1, 0) - values_PC.select(1, 1);
  LossResult result;
  result.loss = loss_of(gaps_P).sum() * (1.0 / denominators.pairs);

  const float* values = numbers(values_N);
  const std::int64_t pairs = values_PC.size(0);
  double chosen = 0;
  double rejected = 0;
  double right = 0;
  for (std::int64_t i = 0; i < pairs; ++i) {
    chosen += values[2 * i];
    rejected += values[2 * i + 1];
    right += values[2 * i] > values[2 * i + 1] ? 1 : 0;
  }
  const auto count = static_cast<double>(pairs);
  const double loss = result.loss.item<float>();
  result.sums.add("train/loss", loss * denominators.pairs, count);
  result.sums.add("train/accuracy", right, count);
  result.sums.add("train/chosen_" + name, chosen, count);
  result.sums.add("train/rejected_" + name, rejected, count);
  result.sums.add("train/" + name + "_margin", chosen - rejected, count);
  result.sums.add_total("train/tokens",
                        static_cast<double>(batch.cu_seqlens.back()));
  return result;
}

} // namespace troupe::models
