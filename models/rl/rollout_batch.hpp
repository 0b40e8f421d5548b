// The scored responses of a step as spans, for the functions that compute
// advantages from them, and the metrics that all of these report.
#pragma once

#include "models/rl/metric_sums.hpp"
#include "models/rl/response_lengths.hpp"
#include "models/rl/rl_math.hpp"
#include "net/base/rows.hpp"

#include <cmath>
#include <span>
#include <string>
#include <vector>

namespace troupe {
struct Settings;
} // namespace troupe

namespace troupe::models {

/// N samples of T tokens in all. A sample whose score is NaN was given up: its
/// mask is 0, which excludes it from everything.
class RolloutBatch {
public:
  /// Reads loss_mask u8[L], scores f32[1], truncated u8[1].
  explicit RolloutBatch(const net::Rows& rows);

  std::size_t num_samples() const {
    return offsets_.size() - 1;
  }
  std::size_t num_tokens() const {
    return mask_T_.size();
  }
  std::size_t num_scored() const;
  /// [N + 1]
  const std::vector<std::uint64_t>& offsets() const {
    return offsets_;
  }
  /// Returns a sample's part of an array over all tokens.
  template <class T>
  std::span<T> part(std::span<T> all_T, std::size_t i) const {
    return all_T.subspan(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  /// Returns the mask of a response's tokens, 0 for those without a score.
  const std::vector<std::uint8_t>& mask() const {
    return mask_T_;
  }
  Mask mask(std::size_t i) const {
    return part(Mask(mask_T_), i);
  }
  float score(std::size_t i) const {
    return scores_N_[i];
  }
  bool scored(std::size_t i) const {
    return !std::isnan(scores_N_[i]);
  }
  bool truncated(std::size_t i) const {
    return truncated_N_[i] != 0;
  }
  /// Returns f32[L] of a key whose entries match the tokens.
  std::span<const float> tokens_of(const net::Rows& rows,
                                   const char* key) const;

private:
  std::vector<std::uint64_t> offsets_;
  std::vector<std::uint8_t> mask_T_;
  std::span<const float> scores_N_;
  std::span<const std::uint8_t> truncated_N_;
};

/// Returns which share of the last `buffer` of `most` tokens a response of
/// `length` tokens takes: the soft punishment of DAPO (Yu et al. 2025, arXiv
/// 2503.14476, eq. 13), with its sign changed.
double overlong_share(std::ptrdiff_t length, std::ptrdiff_t most,
                      std::ptrdiff_t buffer);

/// Returns the reward of a response: scale, bias and clip of `reward`, less the
/// penalty of a long one; or reward.missing_eos.
double shaped_score(const RolloutBatch& batch, std::size_t i,
                    const Settings& settings);
/// Returns the estimator at each unmasked token, 0 elsewhere; all 0 without
/// reference.
std::vector<float> token_kl(const RolloutBatch& batch,
                            std::span<const float> logprobs_T,
                            std::span<const float> reference_T,
                            KlEstimator kind);

/// Adds critic/{score, rewards}, response_length, prompt_length; `rewards_T`
/// are the tokens' rewards.
void add_response_metrics(MetricSums& sums, const RolloutBatch& batch,
                          std::span<const float> rewards_T);

/// Adds a column f32[L] per token.
void add_token_column(net::Rows& rows, const RolloutBatch& batch,
                      const char* key, const std::vector<float>& numbers_T);
/// Adds train_mask u8[L]: the batch's mask, 0 for truncated responses too if
/// `mask_truncated` (overlong filtering of DAPO).
void add_train_mask(net::Rows& rows, const RolloutBatch& batch,
                    bool mask_truncated);

double sum_of(std::span<const float> numbers);

} // namespace troupe::models
