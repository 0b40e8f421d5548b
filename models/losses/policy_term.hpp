// One policy loss before its mean: what the losses of `algorithm.loss` have in
// common. A term is a number per token whose gradient flows only through
// logprobs_T, so that every term goes with every mean, correction (gmpo:
// none per token), entropy bonus and KL term, and any micro-batching gives the
// same gradient (I1).
#pragma once

#include "models/losses/loss.hpp"

#include <ATen/core/Tensor.h>

namespace troupe::models {

struct PolicyTerm {
  at::Tensor loss_T;  ///< f32 [T]; what masked tokens have is not used
  double clipped = 0; ///< unmasked tokens that clipping takes the gradient from
  double lower = 0;   ///< unmasked tokens at the bound of dual clipping
};

/// Returns the term that `settings.policy.kind` names.
PolicyTerm policy_term(const TrainBatch& batch, const LossSettings& settings);

/// Returns exp(logprobs - old), the ratio of each token.
at::Tensor token_ratio_T(const TrainBatch& batch);

/// Returns f32 [T]: at each token the mean of x over the unmasked tokens of its
/// sequence, 0 where there are none; without a gradient.
at::Tensor sequence_means_T(const at::Tensor& x_T, const TrainBatch& batch);

/// Returns `value_T` with the gradient of value_T * log_factor_T, in which
/// value_T counts as a constant. Both are f32 [T].
at::Tensor with_gradient_of(const at::Tensor& value_T,
                            const at::Tensor& log_factor_T);

/// Returns how many unmasked tokens have a number other than 0.
double count_tokens(const at::Tensor& chosen_T, const TrainBatch& batch);

} // namespace troupe::models
