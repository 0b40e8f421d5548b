#include "models/kernels/rope.hpp"

#include "config/base/error.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/kernels/host_simd.hpp"
#include "models/kernels/threads.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::models {

namespace {

constexpr std::int64_t rope_grain_floats = 1 << 14; // worth a thread

// Low frequencies are divided by the factor, high ones are kept, and those
// between are interpolated, as in transformers' `llama3`.
float rope_llama3_frequency(const ModelShape& shape, float frequency) {
  const auto factor = static_cast<float>(shape.rope_factor);
  const double original
    = static_cast<double>(shape.rope_original_max_positions);
  const auto low = static_cast<float>(shape.rope_low_freq_factor);
  const auto high = static_cast<float>(shape.rope_high_freq_factor);
  const float wavelength = 2 * std::numbers::pi_v<float> / frequency;
  if (wavelength > static_cast<float>(original) / low)
    return frequency / factor;
  if (wavelength < static_cast<float>(original) / high)
    return frequency;
  const float smooth
    = (static_cast<float>(original) / wavelength - low) / (high - low);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

} // namespace

RopeTable::RopeTable(const ModelShape& shape)
  : RopeTable(shape, host_backend()) {}

RopeTable::RopeTable(const ModelShape& shape, Backend& backend)
  : backend_(&backend),
    cos_PF_(backend.memory()),
    sin_PF_(backend.memory()) {
  const auto dim = static_cast<float>(shape.head_dim);
  for (std::int64_t i = 0; i < shape.head_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / dim;
    float frequency = static_cast<float>(
      1.0 / std::pow(shape.rope_theta, static_cast<double>(exponent)));
    if (shape.rope_scaling == "linear")
      frequency /= static_cast<float>(shape.rope_factor);
    else if (shape.rope_scaling == "llama3")
      frequency = rope_llama3_frequency(shape, frequency);
    else
      TROUPE_CHECK(shape.rope_scaling.empty(),
                   "unknown rope scaling " + shape.rope_scaling);
    frequencies_.push_back(frequency);
  }
}

void RopeTable::grow(std::int64_t positions) {
  if (positions <= positions_)
    return;
  positions_ = std::max(positions, 2 * positions_);
  const std::int64_t width = num_frequencies();
  std::vector<float> cos(static_cast<std::size_t>(positions_ * width));
  std::vector<float> sin(cos.size());
  for (std::int64_t p = 0; p < positions_; ++p)
    for (std::int64_t i = 0; i < width; ++i) {
      const float angle
        = static_cast<float>(p) * frequencies_[static_cast<std::size_t>(i)];
      const auto at = static_cast<std::size_t>(p * width + i);
      cos[at] = std::cos(angle);
      sin[at] = std::sin(angle);
    }
  backend_->wait(); // readers of the old table must finish first
  const std::size_t size_bytes = cos.size() * sizeof(float);
  backend_->write(cos.data(), cos_PF_.reserve(positions_ * width), size_bytes);
  backend_->write(sin.data(), sin_PF_.reserve(positions_ * width), size_bytes);
}

void rope(const RopeShape& shape, const RopeTable& table,
          const std::int32_t* positions_T, float* x, bool backwards) {
  const std::int64_t half = shape.head_dim / 2;
  const float sign = backwards ? -1.0F : 1.0F;
  const std::int64_t grain = std::max<std::int64_t>(
    1, rope_grain_floats
         / std::max<std::int64_t>(1, shape.heads * shape.head_dim));
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    on_best_isa([&] {
      for (std::int64_t t = begin; t < end; ++t) {
        const float* cos = table.cos(positions_T[t]);
        const float* sin = table.sin(positions_T[t]);
        float* low = x + t * shape.stride;
        for (std::int64_t h = 0; h < shape.heads; ++h, low += 2 * half) {
          float* high = low + half;
#pragma omp simd
          for (std::int64_t i = 0; i < half; ++i) {
            const float a = low[i];
            const float b = high[i];
            const float s = sign * sin[i];
            low[i] = a * cos[i] - b * s;
            high[i] = b * cos[i] + a * s;
          }
        }
      }
    });
  };
  parallel_for(0, shape.rows, grain, run);
}

} // namespace troupe::models
