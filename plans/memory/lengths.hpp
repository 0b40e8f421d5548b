// How long responses are: measured lengths, or a mean and a maximum. Lengths
// below the maximum are distributed exponentially (a model that ends at each
// token with equal probability, cut at the limit); equal mean and maximum are
// fixed lengths. Pure arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace troupe::plans {

/// A stretch of decoding: `steps` tokens with `active` responses still growing
/// and `context` tokens (of the response) before them, on average.
struct DecodePhase {
  double steps = 0;
  double active = 0;
  double context = 0;
};

class Lengths {
public:
  Lengths() = default;
  /// Lengths in tokens. `mean` is clamped to [1, max].
  Lengths(double prompt, double mean, double max);
  /// Takes the lengths of measured responses, of which there is at least one.
  Lengths(double prompt, std::vector<double> responses);

  double prompt() const {
    return prompt_;
  }
  double mean() const {
    return mean_;
  }
  double max() const {
    return max_;
  }
  double sequence_mean() const {
    return prompt_ + mean_;
  }
  /// Returns the mean of the squared sequence length over its mean: twice what
  /// a token attends to on average.
  double attention_length() const {
    return squares_ / sequence_mean();
  }
  /// Returns the share of responses longer than `tokens`.
  double survival(double tokens) const;
  /// Returns the phases of decoding `responses` responses side by side; a dp
  /// rank ends with its longest one.
  std::vector<DecodePhase> phases(double responses) const;
  /// Returns the phases of decoding side by side what is left of `responses`
  /// responses at each of `starts`, by `tokens` more tokens each: slices of
  /// several steps in one batch.
  std::vector<DecodePhase> phases_from(const std::vector<double>& starts,
                                       double tokens, double responses) const;
  /// Returns the phase of decoding as many responses as there are slots, each
  /// of which is reused as soon as it is free.
  DecodePhase steady_phase(double responses) const;

private:
  double prompt_ = 0;
  double mean_ = 1;
  double max_ = 1;
  double rate_ = 0; ///< per token; 0: fixed lengths
  double squares_ = 1;
  /// Ascending; null: distributed as above. Shared by copies.
  std::shared_ptr<const std::vector<double>> measured_;
};

/// Parses "MEAN" or "MEAN:MAX". Throws std::invalid_argument with one sentence.
Lengths parse_lengths(std::string_view text, double prompt);

} // namespace troupe::plans
