// Boxes that tensor peers share: norms, biases of split products, key-value
// heads with more peers than heads. Their gradients are gathered into one
// buffer, each at its place in the whole parameter, and summed with one call.
#pragma once

#include "models/aligned_floats.hpp"
#include "models/model_part.hpp"

#include <cstdint>
#include <vector>

namespace troupe::net {
class Collectives;
} // namespace troupe::net

namespace troupe::models {

class SharedBoxes {
public:
  /// A box of `part` that stands at `offset` of the gradients; taken in if
  /// tensor peers hold it too.
  void add(const ModelPart& part, const PartBox& box, std::int64_t offset);
  /// Sums them over the peers.
  void sum(float* gradients, net::Collectives& tp);

private:
  struct Shared {
    std::int64_t offset = 0;
    std::int64_t count = 0;
    std::int64_t place = 0; ///< in the buffer, which has the whole parameter
  };
  std::vector<Shared> boxes_;
  AlignedFloats buffer_{nullptr}; ///< of the device
  std::int64_t buffer_size_ = 0;
};

} // namespace troupe::models
