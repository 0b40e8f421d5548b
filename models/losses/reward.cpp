#include "models/losses/reward.hpp"

#include "models/losses/pair_loss.hpp"

namespace troupe::models {

LossResult reward_loss(const TrainBatch& batch,
                       const Denominators& denominators, const LossSettings&) {
  return pair_loss(batch.scores_N, "score", batch, denominators);
}

LossEntry reward_loss_entry() {
  return {.name = "reward_loss",
          .function = &reward_loss,
          .exposes = {.scores = true},
          .metric_prefix = "train/",
          .columns = {},
          .pairs = true,
          .reads = {{"chosen_ids"}, {"rejected_ids"}}};
}

} // namespace troupe::models
