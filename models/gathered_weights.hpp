// z3: all weights of a device's part while it makes answers. Generation reads
// every weight for every token, and its copies make different numbers of
// passes, so nothing could be gathered layer by layer: the whole part comes
// from its owners once a call and goes when the call ends.
#pragma once

#include "config/dtype.hpp"
#include "models/parameters.hpp"
#include "models/transformer.hpp"

namespace troupe::net {
class Collectives;
} // namespace troupe::net

namespace troupe::models {

struct ModelPart;

class GatheredWeights {
public:
  /// All copies of `dp` make one at the same time. Throws FailureError like any
  /// collective.
  GatheredWeights(const ModelPart& part, const Parameters& parameters,
                  DType operands, net::Collectives& dp,
                  const net::BlockMemory* memory);

  const Weights& weights() const {
    return weights_;
  }

private:
  Parameters whole_;
  Weights weights_;
};

} // namespace troupe::models
