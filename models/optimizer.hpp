// AdamW over the flat planes, one pass over memory: decay, moments and step
// fused. p *= 1 - lr * weight_decay where a parameter decays (two or more
// dimensions); bias-corrected moments; eps outside the root. Pieces of work and
// the sums in the norm have an order of their own, whatever the threads (I8).
#pragma once

#include "config/settings.hpp"
#include "models/parameters.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

class AdamW {
public:
  AdamW(Parameters& parameters, const OptimizerSettings& settings);

  /// Root of the sum of squares of the gradient plane; may be inf or NaN.
  double gradient_norm() const;
  /// min(1, clip / (norm + 1e-6)), or 1 where clip is 0.
  double clip_scale(double norm) const;
  /// One step with the gradient times `scale`. `step` counts applied steps
  /// from 1 (bias correction).
  void apply(double learning_rate, double scale, std::uint64_t step);
  void clear_gradient();

private:
  struct Piece { // a run of elements of one parameter
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool decay = false;
  };

  Parameters& parameters_;
  OptimizerSettings settings_;
  std::vector<Piece> pieces_;
};

} // namespace troupe::models
