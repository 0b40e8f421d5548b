#include "models/losses/kl_cov.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

PolicyTerm kl_cov_term(const TrainBatch& batch, const LossSettings& settings) {
  const at::Tensor log_ratio_T = batch.logprobs_T - batch.at("logprobs");
  const at::Tensor cost_T = at::abs(log_ratio_T) * settings.policy.cov_kl_coef;
  return {.loss_T = cost_T * batch.at("cov_tokens")
                    - at::exp(log_ratio_T) * batch.at("advantages")};
}

} // namespace troupe::models
