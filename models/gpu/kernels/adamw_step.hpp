// AdamW's step over flat planes, with the contract of models/kernels/adamw.hpp.
// If products read bf16, rounded weights are a second output: masters and
// moments are fp32, and what training adds up is not rounded.
//
// One block per run; the optimizer makes short runs of equal length.
#pragma once

#include "config/base/float16.hpp"
#include "models/gpu/kernels/grid.hpp"
#include "models/kernels/adamw.hpp"

#include <cmath>
#include <cstdint>

namespace troupe::models::gpu {

struct AdamwStep {
  static constexpr int threads = 256;
  struct Shared {};

  AdamNumbers numbers;
  AdamPlanes planes;
  const OptimizerRun* runs = nullptr; ///< in device memory

  static std::int64_t blocks(std::int64_t num_runs) {
    return num_runs;
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared&) const {
    block.each([&](int lane) {
      const OptimizerRun& run = runs[block.index];
      const AdamNumbers& n = numbers;
      const float keep = run.decay ? n.keep : 1.0F;
      const float* grad = planes.grad + run.begin;
      float* p = planes.weight + run.begin;
      float* m = planes.m + run.moment;
      float* v = planes.v + run.moment;
      for (std::int64_t i = lane; i < run.end - run.begin; i += threads) {
        const float g = grad[i] * n.scale;
        m[i] = m[i] + (1.0F - n.beta1) * (g - m[i]);
        v[i] = v[i] * n.beta2 + (1.0F - n.beta2) * g * g;
        p[i] = p[i] * keep - n.step * m[i] / (sqrtf(v[i]) * n.root + n.eps);
        if (planes.rounded != nullptr)
          planes.rounded[run.begin + i] = f32_to_bf16(p[i]);
      }
    });
  }
};

} // namespace troupe::models::gpu
