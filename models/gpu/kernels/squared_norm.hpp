// The sum of squares of a gradient plane in two levels of fixed order (I8): one
// number per run, then the sum of these.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/kernels/adamw.hpp"

#include <cstdint>

namespace troupe::models::gpu {

/// Computes the sum of squares of each run, 0 for those that another device
/// counts. One block per run.
struct RunSquares {
  static constexpr int threads = 256;
  struct Shared {
    double part[threads];
  };

  const float* grad = nullptr;
  const OptimizerRun* runs = nullptr; ///< in device memory
  double* squares = nullptr;          ///< per run

  static std::int64_t blocks(std::int64_t num_runs) {
    return num_runs;
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    block.each([&](int lane) {
      const OptimizerRun& run = runs[block.index];
      const float* g = grad + run.begin;
      const std::int64_t count = run.counted ? run.end - run.begin : 0;
      float total = 0;
      for (std::int64_t i = lane; i < count; i += threads)
        total += g[i] * g[i];
      shared.part[lane] = static_cast<double>(total);
    });
    sum(block, shared.part);
    block.each([&](int lane) {
      if (lane == 0)
        squares[block.index] = shared.part[0];
    });
  }
};

/// Computes the sum of the runs' sums. One block.
struct JoinSquares {
  static constexpr int threads = 256;
  struct Shared {
    double part[threads];
  };

  const double* squares = nullptr;
  std::int64_t num_runs = 0;
  double* total = nullptr;

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    block.each([&](int lane) {
      double mine = 0;
      for (std::int64_t i = lane; i < num_runs; i += threads)
        mine += squares[i];
      shared.part[lane] = mine;
    });
    sum(block, shared.part);
    block.each([&](int lane) {
      if (lane == 0)
        *total = shared.part[0];
    });
  }
};

} // namespace troupe::models::gpu
