#include "models/losses/reward.hpp"

#include "models/losses/token_weights.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

LossResult reward_loss(const TrainBatch& batch,
                       const Denominators& denominators, const LossSettings&) {
  const at::Tensor scores_PC = batch.scores_N.view({-1, 2}); // C: chosen first
  const at::Tensor gaps_P = scores_PC.select(1, 0) - scores_PC.select(1, 1);
  LossResult result;
  result.loss = at::log_sigmoid(gaps_P).sum() * (-1.0 / denominators.pairs);

  const float* scores = numbers(batch.scores_N);
  const std::int64_t pairs = scores_PC.size(0);
  double chosen = 0;
  double rejected = 0;
  double right = 0;
  for (std::int64_t i = 0; i < pairs; ++i) {
    chosen += scores[2 * i];
    rejected += scores[2 * i + 1];
    right += scores[2 * i] > scores[2 * i + 1] ? 1 : 0;
  }
  const auto count = static_cast<double>(pairs);
  const double loss = result.loss.item<float>();
  result.sums.add("train/loss", loss * denominators.pairs, count);
  result.sums.add("train/accuracy", right, count);
  result.sums.add("train/chosen_score", chosen, count);
  result.sums.add("train/rejected_score", rejected, count);
  result.sums.add_total("train/tokens",
                        static_cast<double>(batch.cu_seqlens.back()));
  return result;
}

LossEntry reward_loss_entry() {
  return {.name = "reward_loss",
          .function = &reward_loss,
          .exposes = {.scores = true},
          .metric_prefix = "train/",
          .columns = {},
          .pairs = true};
}

} // namespace troupe::models
