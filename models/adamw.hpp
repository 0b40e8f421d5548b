// The arithmetic of AdamW over flat planes, one pass over memory: decay,
// moments and step fused. Pieces of work and the sums in the norm have an order
// of their own, whatever the threads (I8).
#pragma once

#include <cstdint>
#include <span>

namespace troupe::models {

/// A run of one parameter's elements that this device updates.
struct OptimizerRun {
  std::int64_t begin = 0; ///< in the weight and gradient planes
  std::int64_t end = 0;
  std::int64_t moment = 0; ///< of `begin`, in the planes of the moments
  bool decay = false;
  bool counted = true; ///< in the gradient's norm; else another device does
};

struct AdamNumbers {
  float keep = 1;  ///< of parameters that decay: 1 - lr * weight_decay
  float scale = 1; ///< of the gradient
  float beta1 = 0;
  float beta2 = 0;
  float step = 0; ///< lr / (1 - beta1^t)
  float root = 0; ///< 1 / sqrt(1 - beta2^t)
  float eps = 0;
};

/// Where the planes begin.
struct AdamPlanes {
  float* weight = nullptr;
  const float* grad = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};

/// Of the counted runs of a gradient plane; short runs make threads useful.
double sum_of_squares(const float* grad, std::span<const OptimizerRun> runs);
/// p = p * keep - step * m / (sqrt(v) * root + eps), after the moments.
void adamw(const AdamNumbers& numbers, const AdamPlanes& planes,
           std::span<const OptimizerRun> runs);

} // namespace troupe::models
