// Boxes that tp ranks replicate: norms, biases of split products, key-value
// heads if there are more ranks than heads. Their gradients are gathered into
// one buffer, each at its place in the whole parameter, and summed with one
// call, in the order of the device's kernels (ordered_collectives.hpp).
#pragma once

#include "models/kernels/aligned_floats.hpp"
#include "models/parallel/local_model.hpp"

#include <cstdint>
#include <vector>

namespace troupe::net {
class Collectives;
} // namespace troupe::net

namespace troupe::models {

class Backend;

class TpSharedGrads {
public:
  /// Gradients are in the backend's memory.
  explicit TpSharedGrads(Backend& backend);
  /// Adds a box of `part` whose gradient is at `offset`, if other tp ranks hold
  /// it too.
  void add(const LocalModel& part, const PartBox& box, std::int64_t offset);
  /// Sums the gradients over the tp ranks.
  void sum(float* gradients, net::Collectives& tp);

private:
  struct Shared {
    std::int64_t offset = 0;
    std::int64_t count = 0;
    std::int64_t place = 0; ///< in the buffer, which has room for the whole
                            ///< parameter
  };
  Backend* backend_;
  std::vector<Shared> boxes_;
  AlignedFloats buffer_;
  std::int64_t buffer_size_ = 0;
};

} // namespace troupe::models
