// Rotary positions of a model, as its config.json describes them: the base, the
// part of each head that is rotated, and how frequencies are scaled for longer
// contexts (transformers' `rope_parameters`, formerly `rope_scaling`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

enum class RopeScaling : std::uint8_t {
  none,
  linear,  ///< Chen et al. 2023: all frequencies are divided by the factor
  dynamic, ///< NTK by length: as `none` up to the model's positions
  llama3,  ///< low frequencies are divided, high ones kept
  yarn,    ///< Peng et al. 2023, equations 23 and 24
  longrope ///< Ding et al. 2024: a factor per frequency
};
/// Returns "linear"; "" for none.
std::string to_string(RopeScaling scaling);

struct RopeParameters {
  double theta = 10000.0;
  /// Base of layers with a window, whose frequencies are not scaled (Gemma 3);
  /// 0: they are as those of all layers.
  double local_theta = 0;
  /// Share of each head that is rotated, its first dimensions.
  double share = 1.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0; ///< linear, dynamic, llama3, yarn
  /// Positions of pre-training; llama3, yarn, longrope.
  std::int64_t original_positions = 0;
  /// Rotations within the original positions between which llama3 and yarn
  /// interpolate: low_freq_factor and high_freq_factor, or beta_slow and
  /// beta_fast.
  double band_low = 1.0;
  double band_high = 4.0;
  /// Factor of queries and keys; yarn, longrope. 0: that of the method.
  double attention_factor = 0;
  /// longrope: divisors of the frequencies up to the original positions, and
  /// beyond them.
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};

  bool operator==(const RopeParameters&) const = default;

  std::int64_t rotated_dim(std::int64_t head_dim) const {
    return static_cast<std::int64_t>(static_cast<double>(head_dim) * share);
  }
};

/// Returns the longest sequence, in tokens, for which the rotations are those
/// of the model, which has `max_positions`. Sequences beyond it would need
/// frequencies that change with their length (dynamic, longrope). The positions
/// of llama3 are those after scaling, as in published configs.
std::int64_t context_tokens(const RopeParameters& rope,
                            std::int64_t max_positions);

} // namespace troupe
