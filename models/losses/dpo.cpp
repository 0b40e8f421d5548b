#include "models/losses/dpo.hpp"

#include "models/losses/token_weights.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

/// Which sequence each token is of.
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
  const at::Tensor rewards_PC = rewards_N.view({-1, 2}); // C: chosen first
  const at::Tensor gaps_P = rewards_PC.select(1, 0) - rewards_PC.select(1, 1);
  LossResult result;
  result.loss = at::log_sigmoid(gaps_P).sum() * (-1.0 / denominators.pairs);

  const at::Tensor plain_N = rewards_N.detach().contiguous();
  const float* rewards = plain_N.const_data_ptr<float>();
  const std::int64_t pairs = rewards_PC.size(0);
  double chosen = 0;
  double rejected = 0;
  double right = 0;
  for (std::int64_t i = 0; i < pairs; ++i) {
    chosen += rewards[2 * i];
    rejected += rewards[2 * i + 1];
    right += rewards[2 * i] > rewards[2 * i + 1] ? 1 : 0;
  }
  const auto count = static_cast<double>(pairs);
  const double loss = result.loss.item<float>();
  result.sums.add("train/loss", loss * denominators.pairs, count);
  result.sums.add("train/accuracy", right, count);
  result.sums.add("train/chosen_reward", chosen, count);
  result.sums.add("train/rejected_reward", rejected, count);
  result.sums.add("train/reward_margin", chosen - rejected, count);
  result.sums.add_total("train/tokens",
                        static_cast<double>(batch.cu_seqlens.back()));
  return result;
}

LossEntry dpo_loss_entry() {
  return {.name = "dpo_loss",
          .function = &dpo_loss,
          .exposes = {.logprobs = true},
          .metric_prefix = "train/",
          .columns = {"ref_logprobs"},
          .pairs = true};
}

} // namespace troupe::models
