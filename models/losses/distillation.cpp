#include "models/losses/distillation.hpp"

#include "models/losses/token_weights.hpp"

#include <ATen/ATen.h>

#include <cmath>

namespace troupe::models {

namespace {

/// Least probability of the other tokens together: below it fp32 knows nothing
/// of 1 - sum.
constexpr double least_rest = 1e-6;

/// Returns f64 [T, K + 1]: log-probabilities with that of all other tokens.
at::Tensor with_rest_TE(const at::Tensor& logprobs_TK) {
  const at::Tensor picked_TK = logprobs_TK.to(at::kDouble);
  const at::Tensor rest_T
    = (1 - picked_TK.exp().sum(1, /*keepdim=*/true)).clamp_min(least_rest);
  return at::cat({picked_TK, rest_T.log()}, 1);
}

/// Returns [T] KL(p || q) of log-probabilities.
at::Tensor kl_T(const at::Tensor& p_TE, const at::Tensor& q_TE) {
  return (p_TE.exp() * (p_TE - q_TE)).sum(1);
}

at::Tensor divergence_T(const at::Tensor& student_TE,
                        const at::Tensor& teacher_TE, double beta) {
  if (beta == 0)
    return kl_T(teacher_TE, student_TE);
  if (beta == 1)
    return kl_T(student_TE, teacher_TE);
  const at::Tensor mixture_TE = at::logaddexp(teacher_TE + std::log(beta),
                                              student_TE + std::log1p(-beta));
  return beta * kl_T(teacher_TE, mixture_TE)
         + (1 - beta) * kl_T(student_TE, mixture_TE);
}

/// Returns the sum over unmasked tokens of the probability of picked ones.
double picked_mass(const at::Tensor& logprobs_TK, const at::Tensor& mask_T) {
  return at::dot(logprobs_TK.detach().to(at::kDouble).exp().sum(1),
                 mask_T.to(at::kDouble))
    .item<double>();
}

} // namespace

LossResult distillation_loss(const TrainBatch& batch,
                             const Denominators& denominators,
                             const LossSettings& settings) {
  const at::Tensor& teacher_TK = batch.at("teacher_logprobs");
  const at::Tensor divergence
    = divergence_T(with_rest_TE(batch.picked_TK), with_rest_TE(teacher_TK),
                   settings.distillation_beta);
  LossResult result;
  result.loss = at::dot(divergence, batch.mask_T.to(at::kDouble))
                * (1.0 / denominators.tokens);
  const double tokens = masked_count(batch);
  result.sums.add("actor/distillation_loss",
                  result.loss.item<double>() * denominators.tokens, tokens);
  result.sums.add("actor/teacher_top_mass",
                  picked_mass(teacher_TK, batch.mask_T), tokens);
  result.sums.add("actor/student_top_mass",
                  picked_mass(batch.picked_TK, batch.mask_T), tokens);
  const float* entropy = numbers(batch.entropy_T);
  result.sums.add("actor/entropy",
                  masked_sum(batch, [&](std::int64_t t) { return entropy[t]; }),
                  tokens);
  return result;
}

LossEntry distillation_loss_entry() {
  return {
    .name = "distillation_loss",
    .function = &distillation_loss,
    .exposes = {.entropy = true},
    .metric_prefix = "actor/",
    .columns = {},
    .picked = {.ids = "teacher_ids", .columns = {"teacher_logprobs"}},
    .reads
    = {{"sequence_ids"}, {"loss_mask"}, {"teacher_ids"}, {"teacher_logprobs"}}};
}

} // namespace troupe::models
