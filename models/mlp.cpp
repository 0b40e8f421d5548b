#include "models/mlp.hpp"

#include "models/host_math.hpp"
#include "models/host_simd.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

namespace troupe::models {

namespace {

constexpr std::int64_t mlp_grain_floats = 1 << 13; // worth a thread

std::int64_t mlp_grain_rows(std::int64_t width) {
  return std::max<std::int64_t>(1, mlp_grain_floats / width);
}

} // namespace

void swiglu(std::int64_t rows, std::int64_t width, const float* gate_up,
            float* act) {
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    on_best_isa([&] {
      for (std::int64_t t = begin; t < end; ++t) {
        const float* gate = gate_up + t * 2 * width;
        const float* up = gate + width;
        float* out = act + t * width;
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i)
          out[i] = gate[i] / (1.0F + fast_exp(-gate[i])) * up[i];
      }
    });
  };
  at::parallel_for(0, rows, mlp_grain_rows(width), run);
}

void swiglu_backward(std::int64_t rows, std::int64_t width, float* gate_up,
                     float* d_act) {
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    on_best_isa([&] {
      for (std::int64_t t = begin; t < end; ++t) {
        float* gate = gate_up + t * 2 * width;
        float* up = gate + width;
        float* act = d_act + t * width;
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) {
          const float g = gate[i];
          const float u = up[i];
          const float d = act[i];
          const float sigmoid = 1.0F / (1.0F + fast_exp(-g));
          const float silu = g * sigmoid;
          gate[i] = d * u * sigmoid * (1.0F + g - silu);
          up[i] = d * silu;
          act[i] = silu * u;
        }
      }
    });
  };
  at::parallel_for(0, rows, mlp_grain_rows(width), run);
}

} // namespace troupe::models
