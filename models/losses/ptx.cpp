#include "models/losses/ptx.hpp"

#include "models/losses/token_weights.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

LossResult ptx_loss(const TrainBatch& batch, const Denominators& denominators,
                    const LossSettings& settings) {
  LossResult result;
  const at::Tensor mean
    = at::dot(batch.logprobs_T, batch.mask_T) * (-1.0 / denominators.tokens);
  result.loss = mean * settings.policy.ptx_coef;
  const double tokens = masked_count(batch);
  result.sums.add("actor/ptx_loss", mean.item<float>() * denominators.tokens,
                  tokens);
  result.sums.add_total("actor/ptx_tokens", tokens);
  return result;
}

LossEntry ptx_loss_entry() {
  return {.name = "ptx_loss",
          .function = &ptx_loss,
          .exposes = {.logprobs = true},
          .metric_prefix = "actor/",
          .columns = {},
          .reads = {{"sequence_ids"}, {"loss_mask"}}};
}

} // namespace troupe::models
