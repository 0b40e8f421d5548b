// AdamW over the planes of a shard, and the norm of its gradients. A part of
// backend.hpp.
#pragma once

#include "models/kernels/adamw.hpp"

#include <span>

namespace troupe::models {

class OptimizerKernels {
public:
  virtual ~OptimizerKernels() = default;

  /// Waits for the result.
  virtual double sum_of_squares(const float* grad,
                                std::span<const OptimizerRun> runs)
    = 0;
  virtual void adamw(const AdamNumbers& numbers, const AdamPlanes& planes,
                     std::span<const OptimizerRun> runs)
    = 0;
};

} // namespace troupe::models
