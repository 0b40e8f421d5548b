#include "models/losses/gmpo.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

PolicyTerm gmpo_term(const TrainBatch& batch, const LossSettings& settings) {
  const at::Tensor& advantages_T = batch.at("advantages");
  const at::Tensor sign_T = at::sign(advantages_T);
  const at::Tensor log_ratio_T = batch.logprobs_T - batch.at("logprobs");
  const at::Tensor near_T
    = at::clamp(log_ratio_T, -settings.clip.low, settings.clip.high);
  const at::Tensor kept_T
    = sign_T * at::minimum(sign_T * log_ratio_T, sign_T * near_T);
  const at::Tensor ratio_T = with_gradient_of(
    at::exp(sequence_means_T(kept_T.detach().contiguous(), batch)), kept_T);
  return {.loss_T = -(ratio_T * advantages_T),
          .clipped
          = count_tokens(at::lt(sign_T * near_T, sign_T * log_ratio_T), batch)};
}

} // namespace troupe::models
