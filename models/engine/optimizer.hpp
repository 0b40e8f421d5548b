// AdamW over the flat planes (models/kernels/adamw.hpp): p *= 1 - lr *
// weight_decay if a parameter decays (two or more dimensions); bias-corrected
// moments; eps outside the root.
#pragma once

#include "config/settings/settings.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

/// Returns the runs of its part that this device updates, in the order of the
/// moments.
std::vector<OptimizerRun> optimizer_runs(const LocalModel& part,
                                         const Parameters& parameters);

class AdamW {
public:
  AdamW(Parameters& parameters, const OptimizerSettings& settings);
  AdamW(Parameters& parameters, const OptimizerSettings& settings,
        const std::vector<OptimizerRun>& runs,
        Backend& backend = host_backend());

  /// Returns the sum of squares of the gradient over the counted runs; may be
  /// inf or NaN.
  double squared_norm() const;
  /// Returns min(1, clip / (norm + 1e-6)), or 1 if clip is 0.
  double clip_scale(double norm) const;
  /// Applies one step with the gradient times `scale`. `step` counts applied
  /// steps from 1 (bias correction).
  void apply(double learning_rate, double scale, std::uint64_t step);
  /// Moves corrections of experts' scores by `router_bias_rate` against their
  /// gradient's sign, which is that of load - mean load (models/transformer/
  /// router.hpp): no moments, no learning rate, no part in the norm.
  void balance();
  void clear_gradient();

private:
  Parameters& parameters_;
  OptimizerSettings settings_;
  Backend& backend_;
  std::vector<OptimizerRun> pieces_;   ///< short runs, for the threads
  std::vector<OptimizerRun> balanced_; ///< not among them
};

} // namespace troupe::models
