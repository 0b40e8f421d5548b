// AdamW over flat planes in one pass over memory: decay, moments and step are
// fused. Pieces of work and the sums of the norm have a fixed order of their
// own, independent of the thread count (I8).
#pragma once

#include <cstdint>
#include <span>

namespace troupe::models {

/// A run of one parameter's elements that this device updates.
struct OptimizerRun {
  std::int64_t begin = 0; ///< offset in the weight and gradient planes
  std::int64_t end = 0;
  std::int64_t moment = 0; ///< offset of `begin` in the planes of the moments
  bool decay = false;
  bool counted = true; ///< part of the gradient norm here; else another device
                       ///< counts it
  /// Corrections of experts' scores (AdamW::balance).
  bool balances = false;
};

struct AdamNumbers {
  float keep = 1;  ///< factor of parameters that decay: 1 - lr * weight_decay
  float scale = 1; ///< factor of the gradient
  float beta1 = 0;
  float beta2 = 0;
  float step = 0; ///< lr / (1 - beta1^t)
  float root = 0; ///< 1 / sqrt(1 - beta2^t)
  float eps = 0;
};

/// Starts of the planes.
struct AdamPlanes {
  float* weight = nullptr;
  const float* grad = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  /// Weights in bf16, a second output; null: none. Backends that store fp32
  /// only have none.
  std::uint16_t* rounded = nullptr;
};

/// Returns the sum of squares over the counted runs of a gradient plane. Short
/// runs let more threads take part.
double sum_of_squares(const float* grad, std::span<const OptimizerRun> runs);
/// Updates the moments, then p = p * keep - step * m / (sqrt(v) * root + eps).
void adamw(const AdamNumbers& numbers, const AdamPlanes& planes,
           std::span<const OptimizerRun> runs);

} // namespace troupe::models
