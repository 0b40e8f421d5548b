#include "models/kernels/rope.hpp"

#include "models/kernels/host_backend.hpp"
#include "models/kernels/host_simd.hpp"
#include "models/kernels/rope_frequencies.hpp"
#include "models/kernels/threads.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::models {

namespace {

constexpr std::int64_t rope_grain_floats = 1 << 14; // worth a thread

RopeParameters local_rope(const RopeParameters& rope) {
  return {.theta = rope.local_theta, .share = rope.share};
}

} // namespace

RopeTable::RopeTable(std::vector<float> frequencies, float attention_factor,
                     DeviceAccess& device)
  : device_(&device),
    frequencies_(std::move(frequencies)),
    attention_factor_(attention_factor),
    cos_PF_(device.memory()),
    sin_PF_(device.memory()) {}

RopeTables::RopeTables(const ModelShape& shape)
  : RopeTables(shape, host_backend()) {}

RopeTables::RopeTables(const ModelShape& shape, DeviceAccess& device)
  : global_(rope_frequencies(shape.rope, shape.head_dim),
            rope_attention_factor(shape.rope, shape.max_positions), device) {
  if (shape.rope.local_theta > 0)
    local_.emplace(rope_frequencies(local_rope(shape.rope), shape.head_dim),
                   /*attention_factor=*/1.0F, device);
}

void RopeTables::grow(std::int64_t positions) {
  global_.grow(positions);
  if (local_)
    local_->grow(positions);
}

const RopeTable* RopeTables::of(LayerRope layer) const {
  switch (layer) {
  case LayerRope::none:
    return nullptr;
  case LayerRope::global:
    return &global_;
  case LayerRope::local:
    return &*local_;
  }
  return nullptr;
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
      cos[at] = attention_factor_ * std::cos(angle);
      sin[at] = attention_factor_ * std::sin(angle);
    }
  device_->wait(); // readers of the old table must finish first
  const std::size_t size_bytes = cos.size() * sizeof(float);
  device_->write(cos.data(), cos_PF_.reserve(positions_ * width), size_bytes);
  device_->write(sin.data(), sin_PF_.reserve(positions_ * width), size_bytes);
}

void rope(const RopeShape& shape, const RopeTable& table,
          const std::int32_t* positions_T, float* x, bool backwards) {
  const std::int64_t half = table.num_frequencies();
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
        for (std::int64_t h = 0; h < shape.heads; ++h, low += shape.head_dim) {
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
