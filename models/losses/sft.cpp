#include "models/losses/sft.hpp"

#include "models/losses/token_weights.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

LossResult sft_loss(const TrainBatch& batch, const Denominators& denominators,
                    const LossSettings&) {
  LossResult result;
  result.loss
    = at::dot(batch.logprobs_T, batch.mask_T) * (-1.0 / denominators.tokens);
  const double tokens = masked_count(batch);
  const double loss = result.loss.item<float>();
  result.sums.add("train/loss", loss * denominators.tokens, tokens);
  result.sums.add_total("train/tokens", tokens);
  return result;
}

LossEntry sft_loss_entry() {
  return {.name = "sft_loss",
          .function = &sft_loss,
          .exposes = {.logprobs = true},
          .metric_prefix = "train/",
          .columns = {},
          .reads = {{"sequence_ids"}, {"loss_mask"}}};
}

} // namespace troupe::models
