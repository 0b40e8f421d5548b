#include "models/losses/policy_term.hpp"

#include "config/base/error.hpp"
#include "models/losses/cispo.hpp"
#include "models/losses/clip_cov.hpp"
#include "models/losses/gmpo.hpp"
#include "models/losses/gspo.hpp"
#include "models/losses/kl_cov.hpp"
#include "models/losses/ppo_clip.hpp"
#include "models/losses/sapo.hpp"
#include "models/losses/token_weights.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace troupe::models {

PolicyTerm policy_term(const TrainBatch& batch, const LossSettings& settings) {
  switch (settings.policy.kind) {
  case PolicyKind::ppo:
    return ppo_clip_term(batch, settings);
  case PolicyKind::gspo:
    return gspo_term(batch, settings);
  case PolicyKind::cispo:
    return cispo_term(batch, settings);
  case PolicyKind::sapo:
    return sapo_term(batch, settings);
  case PolicyKind::gmpo:
    return gmpo_term(batch, settings);
  case PolicyKind::clip_cov:
    return clip_cov_term(batch, settings);
  case PolicyKind::kl_cov:
    return kl_cov_term(batch, settings);
  }
  TROUPE_CHECK(false, "a policy loss without a term");
  return {};
}

at::Tensor token_ratio_T(const TrainBatch& batch) {
  return at::exp(batch.logprobs_T - batch.at("logprobs"));
}

at::Tensor sequence_means_T(const at::Tensor& x_T, const TrainBatch& batch) {
  const float* mask = numbers(batch.mask_T);
  const float* x = numbers(x_T);
  at::Tensor means_T = at::zeros({x_T.numel()}, at::kFloat);
  auto* means = means_T.mutable_data_ptr<float>();
  for (std::size_t s = 0; s + 1 < batch.cu_seqlens.size(); ++s) {
    double sum = 0;
    double count = 0;
    for (auto t = batch.cu_seqlens[s]; t < batch.cu_seqlens[s + 1]; ++t) {
      sum += mask[t] != 0 ? x[t] : 0.0;
      count += mask[t] != 0 ? 1 : 0;
    }
    const auto mean = static_cast<float>(count == 0 ? 0.0 : sum / count);
    std::fill(means + batch.cu_seqlens[s], means + batch.cu_seqlens[s + 1],
              mean);
  }
  return means_T;
}

at::Tensor with_gradient_of(const at::Tensor& value_T,
                            const at::Tensor& log_factor_T) {
  return value_T.detach() * at::exp(log_factor_T - log_factor_T.detach());
}

double count_tokens(const at::Tensor& chosen_T, const TrainBatch& batch) {
  const at::Tensor chosen_f32_T = chosen_T.to(at::kFloat).contiguous();
  const float* chosen = numbers(chosen_f32_T);
  return masked_sum(batch,
                    [&](std::int64_t t) { return chosen[t] != 0 ? 1.0 : 0.0; });
}

} // namespace troupe::models
