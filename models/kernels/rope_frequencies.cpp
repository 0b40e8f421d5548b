#include "models/kernels/rope_frequencies.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::models {

namespace {

float plain_frequency(const RopeParameters& rope, std::int64_t pair,
                      std::int64_t dim) {
  const float exponent = static_cast<float>(2 * pair) / static_cast<float>(dim);
  return static_cast<float>(
    1.0 / std::pow(rope.theta, static_cast<double>(exponent)));
}

float llama3_frequency(const RopeParameters& rope, float frequency) {
  const auto factor = static_cast<float>(rope.factor);
  const auto original = static_cast<float>(rope.original_positions);
  const auto low = static_cast<float>(rope.band_low);
  const auto high = static_cast<float>(rope.band_high);
  const float wavelength = 2 * std::numbers::pi_v<float> / frequency;
  if (wavelength > original / low)
    return frequency / factor;
  if (wavelength < original / high)
    return frequency;
  const float smooth = (original / wavelength - low) / (high - low);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

/// Returns the pair of dimensions that turns `rotations` times within the
/// original positions, as a real number.
double pair_of_rotations(const RopeParameters& rope, double rotations,
                         std::int64_t dim) {
  return static_cast<double>(dim)
         * std::log(static_cast<double>(rope.original_positions)
                    / (rotations * 2 * std::numbers::pi))
         / (2 * std::log(rope.theta));
}

float yarn_frequency(const RopeParameters& rope, float frequency,
                     std::int64_t pair, std::int64_t dim) {
  const double first
    = std::max(std::floor(pair_of_rotations(rope, rope.band_high, dim)), 0.0);
  double last = std::min(std::ceil(pair_of_rotations(rope, rope.band_low, dim)),
                         static_cast<double>(dim - 1));
  if (first == last)
    last += 0.001;
  const auto ramp = static_cast<float>(
    std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0));
  return frequency / static_cast<float>(rope.factor) * ramp
         + frequency * (1 - ramp);
}

} // namespace

std::vector<float> rope_frequencies(const RopeParameters& rope,
                                    std::int64_t head_dim) {
  const std::int64_t dim = rope.rotated_dim(head_dim);
  std::vector<float> frequencies;
  for (std::int64_t pair = 0; pair < dim / 2; ++pair) {
    const float plain = plain_frequency(rope, pair, dim);
    switch (rope.scaling) {
    case RopeScaling::none:
    case RopeScaling::dynamic:
      frequencies.push_back(plain);
      break;
    case RopeScaling::linear:
      frequencies.push_back(plain / static_cast<float>(rope.factor));
      break;
    case RopeScaling::llama3:
      frequencies.push_back(llama3_frequency(rope, plain));
      break;
    case RopeScaling::yarn:
      frequencies.push_back(yarn_frequency(rope, plain, pair, dim));
      break;
    case RopeScaling::longrope:
      frequencies.push_back(
        plain
        / static_cast<float>(
          rope.short_factors[static_cast<std::size_t>(pair)]));
      break;
    }
  }
  return frequencies;
}

float rope_attention_factor(const RopeParameters& rope,
                            std::int64_t max_positions) {
  if (rope.attention_factor > 0)
    return static_cast<float>(rope.attention_factor);
  if (rope.scaling == RopeScaling::yarn)
    return rope.factor <= 1
             ? 1.0F
             : static_cast<float>(0.1 * std::log(rope.factor) + 1.0);
  if (rope.scaling != RopeScaling::longrope)
    return 1.0F;
  const auto original = static_cast<double>(rope.original_positions);
  const double factor = static_cast<double>(max_positions) / original;
  return factor <= 1 ? 1.0F
                     : static_cast<float>(
                       std::sqrt(1 + std::log(factor) / std::log(original)));
}

} // namespace troupe::models
