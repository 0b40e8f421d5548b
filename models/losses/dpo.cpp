#include "models/losses/dpo.hpp"

#include "models/losses/pair_loss.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

/// Returns the index of each token's sequence.
at::Tensor sequence_index_T(const TrainBatch& batch) {
  at::Tensor index_T = at::empty({batch.cu_seqlens.back()}, at::kLong);
  auto* index = index_T.mutable_data_ptr<std::int64_t>();
  for (std::int64_t s = 0; s < batch.num_sequences(); ++s)
    for (auto t = batch.cu_seqlens[static_cast<std::size_t>(s)];
         t < batch.cu_seqlens[static_cast<std::size_t>(s) + 1]; ++t)
      index[t] = s;
  return index_T;
}

} // namespace

LossResult dpo_loss(const TrainBatch& batch, const Denominators& denominators,
                    const LossSettings& settings) {
  const at::Tensor ratios_T
    = (batch.logprobs_T - batch.at("ref_logprobs")) * batch.mask_T;
  const at::Tensor rewards_N
    = at::zeros({batch.num_sequences()}, at::kFloat)
        .index_add(0, sequence_index_T(batch), ratios_T * settings.beta);
  return pair_loss(rewards_N, "reward", batch, denominators);
}

LossEntry dpo_loss_entry() {
  return {.name = "dpo_loss",
          .function = &dpo_loss,
          .exposes = {.logprobs = true},
          .metric_prefix = "train/",
          .columns = {"ref_logprobs"},
          .pairs = true,
          .reads = {{"chosen_ids"},
                    {"chosen_loss_mask"},
                    {"chosen_ref_logprobs"},
                    {"rejected_ids"},
                    {"rejected_loss_mask"},
                    {"rejected_ref_logprobs"}}};
}

} // namespace troupe::models
