// z3: all weights of a device's part while it generates. Generation reads every
// weight for every token, and dp ranks make different numbers of passes, so
// nothing could be gathered layer by layer: the whole part is gathered from its
// owners once per call and freed when the call ends.
#pragma once

#include "config/base/dtype.hpp"
#include "models/parallel/parameters.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/transformer.hpp"

namespace troupe::models {

struct LocalModel;

class GatheredWeights {
public:
  /// Gathers the weights. Collective over dp. Throws FailureError like any
  /// collective.
  GatheredWeights(const LocalModel& part, const Parameters& parameters,
                  DType operands, const Groups& groups, Backend& backend);

  const Weights& weights() const {
    return weights_;
  }

private:
  Parameters whole_;
  Weights weights_;
};

} // namespace troupe::models
