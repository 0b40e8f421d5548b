// AdamW over the flat planes (models/adamw.hpp): p *= 1 - lr * weight_decay
// where a parameter decays (two or more dimensions); bias-corrected moments;
// eps outside the root.
#pragma once

#include "config/settings.hpp"
#include "models/host_compute.hpp"
#include "models/model_part.hpp"
#include "models/parameters.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

/// What this device's copy updates of its part, in the order of the moments.
std::vector<OptimizerRun> optimizer_runs(const ModelPart& part,
                                         const Parameters& parameters);

class AdamW {
public:
  AdamW(Parameters& parameters, const OptimizerSettings& settings);
  AdamW(Parameters& parameters, const OptimizerSettings& settings,
        const std::vector<OptimizerRun>& runs,
        Compute& compute = host_compute());

  /// Sum of squares of the gradient over the counted runs; may be inf or NaN.
  double squared_norm() const;
  /// min(1, clip / (norm + 1e-6)), or 1 where clip is 0.
  double clip_scale(double norm) const;
  /// One step with the gradient times `scale`. `step` counts applied steps
  /// from 1 (bias correction).
  void apply(double learning_rate, double scale, std::uint64_t step);
  void clear_gradient();

private:
  Parameters& parameters_;
  OptimizerSettings settings_;
  Compute& compute_;
  std::vector<OptimizerRun> pieces_; ///< short ones, for the threads
};

} // namespace troupe::models
