// How long answers are: a mean and a maximum. Lengths below the maximum fall
// off exponentially (a model that ends each token with equal chance, cut at the
// limit); equal mean and maximum are fixed lengths. Pure arithmetic.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::plans {

/// Stretch of decoding: `steps` tokens with `active` answers still growing and
/// `context` tokens (of the answer) behind them, on average.
struct DecodePhase {
  double steps = 0;
  double active = 0;
  double context = 0;
};

class Lengths {
public:
  Lengths() = default;
  /// Tokens. `mean` is cut to 1 .. `max`.
  Lengths(double prompt, double mean, double max);

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
  /// Mean of the squared sequence length over its mean: what a token attends
  /// to, twice over.
  double attention_length() const {
    return squares_ / sequence_mean();
  }
  /// Share of answers longer than `tokens`.
  double survival(double tokens) const;
  /// Decoding of `answers` answers side by side; a dp rank ends with its
  /// longest one.
  std::vector<DecodePhase> phases(double answers) const;
  /// Decoding of as many answers as there are places, each of which is given to
  /// the next answer as soon as it is free.
  DecodePhase steady_phase(double answers) const;

private:
  double prompt_ = 0;
  double mean_ = 1;
  double max_ = 1;
  double rate_ = 0; ///< per token; 0: fixed lengths
  double squares_ = 1;
};

/// "MEAN" or "MEAN:MAX". Throws std::invalid_argument with one sentence.
Lengths parse_lengths(std::string_view text, double prompt);

} // namespace troupe::plans
