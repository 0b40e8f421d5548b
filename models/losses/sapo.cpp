#include "models/losses/sapo.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

PolicyTerm sapo_term(const TrainBatch& batch, const LossSettings& settings) {
  const at::Tensor& advantages_T = batch.at("advantages");
  const at::Tensor tau_T = at::where(
    advantages_T > 0, at::full_like(advantages_T, settings.policy.tau_positive),
    at::full_like(advantages_T, settings.policy.tau_negative));
  const at::Tensor gate_T
    = at::sigmoid(tau_T * (token_ratio_T(batch) - 1.0)) * (4.0 / tau_T);
  return {.loss_T = -(gate_T * advantages_T)};
}

} // namespace troupe::models
