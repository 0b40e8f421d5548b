#include "models/losses/gspo.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

PolicyTerm gspo_term(const TrainBatch& batch, const LossSettings& settings) {
  const at::Tensor& advantages_T = batch.at("advantages");
  const at::Tensor log_ratio_T
    = batch.logprobs_T.detach() - batch.at("logprobs");
  const at::Tensor ratio_T = with_gradient_of(
    at::exp(sequence_means_T(log_ratio_T, batch)), batch.logprobs_T);
  const at::Tensor clipped_T
    = at::clamp(ratio_T, 1.0 - settings.clip.low, 1.0 + settings.clip.high);
  const at::Tensor plain_T = ratio_T * advantages_T;
  const at::Tensor bound_T = clipped_T * advantages_T;
  return {.loss_T = -at::minimum(plain_T, bound_T),
          .clipped = count_tokens(at::lt(bound_T, plain_T), batch)};
}

} // namespace troupe::models
