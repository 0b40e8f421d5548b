#include "models/losses/correction.hpp"

#include "config/base/error.hpp"
#include "models/losses/token_weights.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

/// exp of more says no more than that the policies have nothing in common.
constexpr double most_log_ratio = 20.0;

double bounded_exp(double log_ratio) {
  return std::exp(std::clamp(log_ratio, -most_log_ratio, most_log_ratio));
}

/// Log ratios of a token, and of its response as sum and mean.
struct LogRatios {
  double token = 0;
  double sum = 0;
  double mean = 0;
};

struct Weight {
  double value = 1;
  bool cut = false; ///< not the ratio itself
};

Weight truncated(double ratio, const CorrectionOptions& options) {
  const double value = std::clamp(ratio, options.floor, options.cap);
  return {.value = value, .cut = value != ratio};
}

/// Returns the weight `value` where `ratio` is within the limits, else 0.
Weight kept_within(double ratio, const CorrectionOptions& options,
                   double value) {
  const bool kept = ratio >= options.floor && ratio <= options.cap;
  return {.value = kept ? value : 0.0, .cut = !kept};
}

Weight masked(double ratio, const CorrectionOptions& options) {
  return kept_within(ratio, options, ratio);
}

Weight weight_of(const LogRatios& log_ratios,
                 const CorrectionOptions& options) {
  switch (options.kind) {
  case CorrectionKind::none:
    return {};
  case CorrectionKind::tis:
    return truncated(bounded_exp(log_ratios.token), options);
  case CorrectionKind::icepop:
    return masked(bounded_exp(log_ratios.token), options);
  case CorrectionKind::sequence_tis:
    return truncated(bounded_exp(log_ratios.sum), options);
  case CorrectionKind::sequence_mask:
    return masked(bounded_exp(log_ratios.sum), options);
  case CorrectionKind::geometric_mask:
    return kept_within(bounded_exp(log_ratios.mean), options,
                       bounded_exp(log_ratios.token));
  case CorrectionKind::rejection:
    return kept_within(bounded_exp(log_ratios.mean), options, 1.0);
  }
  TROUPE_CHECK(false, "a correction without weights");
  return {};
}

/// Returns log p_train - log p_rollout of each token.
at::Tensor log_ratios_of(const TrainBatch& batch) {
  const bool recomputed = batch.has("rollout_logprobs");
  const at::Tensor train_T
    = recomputed ? batch.at("logprobs") : batch.logprobs_T.detach();
  return (train_T - batch.at(recomputed ? "rollout_logprobs" : "logprobs"))
    .contiguous();
}

} // namespace

at::Tensor correction_weights_T(const TrainBatch& batch,
                                const CorrectionOptions& options,
                                MetricSums& sums) {
  const at::Tensor log_ratio_T = log_ratios_of(batch);
  const float* mask = numbers(batch.mask_T);
  const float* log_ratio = numbers(log_ratio_T);
  at::Tensor weights_T = at::zeros({log_ratio_T.numel()}, at::kFloat);
  auto* weights = weights_T.mutable_data_ptr<float>();
  double total = 0;
  double cut = 0;
  for (std::size_t s = 0; s + 1 < batch.cu_seqlens.size(); ++s) {
    LogRatios log_ratios;
    double length = 0;
    for (auto t = batch.cu_seqlens[s]; t < batch.cu_seqlens[s + 1]; ++t)
      if (mask[t] != 0) {
        log_ratios.sum += log_ratio[t];
        length += 1;
      }
    log_ratios.mean = length == 0 ? 0.0 : log_ratios.sum / length;
    for (auto t = batch.cu_seqlens[s]; t < batch.cu_seqlens[s + 1]; ++t) {
      if (mask[t] == 0)
        continue;
      log_ratios.token = log_ratio[t];
      const Weight weight = weight_of(log_ratios, options);
      weights[t] = static_cast<float>(weight.value);
      total += weight.value;
      cut += weight.cut ? 1 : 0;
    }
  }
  const double tokens = masked_count(batch);
  sums.add("actor/is_weight_mean", total, tokens);
  sums.add("actor/is_clip_frac", cut, tokens);
  return weights_T;
}

} // namespace troupe::models
