#include "models/losses/cispo.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

PolicyTerm cispo_term(const TrainBatch& batch, const LossSettings& settings) {
  const at::Tensor ratio_T = token_ratio_T(batch).detach();
  const at::Tensor clipped_T
    = at::clamp(ratio_T, 1.0 - settings.clip.low, 1.0 + settings.clip.high);
  return {.loss_T = -(clipped_T * batch.at("advantages") * batch.logprobs_T),
          .clipped = count_tokens(at::ne(clipped_T, ratio_T), batch)};
}

} // namespace troupe::models
