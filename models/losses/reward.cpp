#include "models/losses/reward.hpp"

#include "config/settings/settings.hpp"
#include "models/losses/pair_loss.hpp"
#include "models/losses/sequence_sums.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

/// Returns [P] by how much each chosen sequence is to be ahead.
at::Tensor margins_P(const TrainBatch& batch) {
  return first_entries_N(batch.at("pair_margin"), batch)
    .view({-1, 2})
    .select(1, 0);
}

} // namespace

LossResult reward_loss(const TrainBatch& batch,
                       const Denominators& denominators,
                       const LossSettings& settings) {
  const at::Tensor scores_PC = batch.scores_N.view({-1, 2}); // C: chosen first
  const double center = settings.preference.center_coef;
  const GapLoss of_pair = [&](const at::Tensor& gaps_P) {
    const at::Tensor loss_P = batch.has("pair_margin")
                                ? logistic_gap_loss(gaps_P - margins_P(batch))
                                : logistic_gap_loss(gaps_P);
    return center == 0 ? loss_P : loss_P + scores_PC.sum(1).square() * center;
  };
  return pair_loss(batch.scores_N, "score", batch, denominators, of_pair);
}

LossEntry reward_loss_entry() {
  return {.name = "reward_loss",
          .function = &reward_loss,
          .exposes = {.scores = true},
          .metric_prefix = "train/",
          .columns = {"pair_margin"},
          .pairs = true,
          .reads
          = {{"chosen_ids"}, {"rejected_ids"}, {"pair_margin", &has_margin}}};
}

} // namespace troupe::models
