#include "models/losses/clip_cov.hpp"

#include "models/losses/ppo_clip.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

PolicyTerm clip_cov_term(const TrainBatch& batch,
                         const LossSettings& settings) {
  const at::Tensor& chosen_T = batch.at("cov_tokens");
  PolicyTerm term = ppo_clip_term(batch, settings);
  term.loss_T = term.loss_T * (1.0 - chosen_T);
  term.clipped = count_tokens(chosen_T, batch);
  return term;
}

} // namespace troupe::models
