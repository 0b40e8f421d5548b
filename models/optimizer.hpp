// AdamW over the flat planes, one pass over memory: decay, moments and step
// fused. p *= 1 - lr * weight_decay where a parameter decays (two or more
// dimensions); bias-corrected moments; eps outside the root. Pieces of work and
// the sums in the norm have an order of their own, whatever the threads (I8).
#pragma once

#include "config/settings.hpp"
#include "models/model_part.hpp"
#include "models/parameters.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

/// A run of one parameter's elements that this device updates.
struct OptimizerRun {
  std::int64_t begin = 0; ///< in the weight and gradient planes
  std::int64_t end = 0;
  std::int64_t moment = 0; ///< of `begin`, in the planes of the moments
  bool decay = false;
  bool counted = true; ///< in the gradient's norm; else another device does
};
/// Every parameter whole.
std::vector<OptimizerRun> whole_runs(const Parameters& parameters);

/// What this device's copy updates of its part, in the order of the moments.
std::vector<OptimizerRun> optimizer_runs(const ModelPart& part,
                                         const Parameters& parameters);

class AdamW {
public:
  AdamW(Parameters& parameters, const OptimizerSettings& settings);
  AdamW(Parameters& parameters, const OptimizerSettings& settings,
        const std::vector<OptimizerRun>& runs);

  /// Sum of squares of the gradient over the counted runs; may be inf or NaN.
  double squared_norm() const;
  /// Its root.
  double gradient_norm() const;
  /// min(1, clip / (norm + 1e-6)), or 1 where clip is 0.
  double clip_scale(double norm) const;
  /// One step with the gradient times `scale`. `step` counts applied steps
  /// from 1 (bias correction).
  void apply(double learning_rate, double scale, std::uint64_t step);
  void clear_gradient();

private:
  Parameters& parameters_;
  OptimizerSettings settings_;
  std::vector<OptimizerRun> pieces_; ///< short ones, for the threads
};

} // namespace troupe::models
