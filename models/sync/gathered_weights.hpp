// z3: all weights of a device's part while it generates. Generation reads every
// weight for every token, and dp ranks make different numbers of passes, so
// nothing could be gathered layer by layer: the whole part is gathered from its
// owners once per call, as kernels read it.
#pragma once

#include "config/base/dtype.hpp"
#include "models/parallel/parameters.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/transformer.hpp"

namespace troupe::models {

struct LocalModel;

class GatheredWeights {
public:
  /// Allocates them; keeps references to part, parameters and backend.
  GatheredWeights(const LocalModel& part, const Parameters& parameters,
                  DType operands, Backend& backend);

  /// Gathers the current weights, in place of those before. Collective over dp.
  /// Throws FailureError like any collective.
  void gather(const Groups& groups);
  const Weights& weights() const {
    return weights_;
  }

private:
  const LocalModel& part_;
  const Parameters& parameters_;
  Backend& backend_;
  Parameters whole_;
  Weights weights_;
};

} // namespace troupe::models
