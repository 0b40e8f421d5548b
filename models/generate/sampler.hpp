// Converts logits to a token. Filters act in the order of Hugging Face's
// processors (repetition penalty, temperature, top-k, top-p, min-p, each on the
// output of the previous one); then invariant I2 selects among the rest.
//
// The log-probability of a token is that of the model itself: log
// softmax(logits / temperature) over the whole vocabulary, before penalty and
// filters. PPO's training recomputes the same, so the ratio of the first
// optimizer step is 1 for any filters. (With filters the sampler's own
// probabilities are larger; the ratio does not correct for that.)
// Options select the sampler's own instead, and the ids that filters kept, with
// which training computes the same (kernels/kept_logits.hpp).
#pragma once

#include "models/generate/generate_options.hpp"
#include "models/generate/gumbel.hpp"
#include "models/kernels/token_draw.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

/// Throws FailureError{numerics}: there is no token to draw.
[[noreturn]] void logits_are_not_finite();

/// Draws tokens under one set of options. Has scratch space: one per thread.
class Sampler {
public:
  Sampler(const GenerateOptions& options, std::int64_t vocab_size);

  /// Draws the token that `name` identifies. `previous` is prompt and response
  /// so far (read only by the repetition penalty), `num_new` the number of
  /// tokens drawn before. Throws FailureError{numerics} if no logit is finite
  /// or one is NaN.
  DrawnToken draw(std::span<const float> logits_V,
                  std::span<const std::int32_t> previous, std::int64_t num_new,
                  const DrawName& name);

  /// Returns the ids among which the last token was drawn, ascending; for
  /// masked log-probabilities only.
  std::span<const std::int32_t> kept() const {
    return kept_;
  }

  /// Penalizes, scales and filters `logits_V` in place: kept entries become
  /// logit / temperature, removed ones -inf.
  void filter(std::span<float> logits_V,
              std::span<const std::int32_t> previous);

private:
  void ban_stop_ids(std::span<float> logits_V) const;
  void penalize(std::span<float> logits_V,
                std::span<const std::int32_t> previous);
  void keep_top_k(std::span<float> logits_V);
  void keep_first_ties(std::span<float> logits_V, float least) const;
  void keep_top_p(std::span<float> logits_V);
  void keep_min_p(std::span<float> logits_V) const;
  bool filters() const;
  std::int32_t argmax_with_noise(std::span<const float> logits_V,
                                 double divisor, const DrawName& name);

  GenerateOptions options_;
  double temperature_ = 1; ///< for log-probabilities: 1 if options have 0
  bool greedy_ = false;
  std::vector<float> work_V_;       ///< filtered logits
  std::vector<float> noise_V_;      ///< Gumbel numbers of the row
  std::vector<float> order_;        ///< values, for top-k
  std::vector<std::int32_t> by_id_; ///< ids by descending value, for top-p
  std::vector<std::uint8_t> seen_V_;
  std::vector<std::int32_t> kept_;
};

/// Returns the log of the sum of exp(logits / temperature), in float with
/// double totals; NaN if a logit is NaN, -inf if none is finite.
double log_sum_exp(std::span<const float> logits_V, double temperature);

} // namespace troupe::models
