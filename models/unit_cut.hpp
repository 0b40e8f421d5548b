// How z1 cuts the parts of a model over the copies with other samples (dp):
// each unit (embedding, layer, final norm and head) is one flat run of
// elements, of which copy i has the i-th ceil-sized part (plans::Layout).
// Reduce-scatter and all-gather of a unit go through one packed buffer, for
// between parameters a plane has padding.
#pragma once

#include "models/aligned_floats.hpp"
#include "models/model_part.hpp"

#include <cstdint>
#include <vector>

namespace troupe::net {
class Collectives;
} // namespace troupe::net

namespace troupe::models {

class UnitCut {
public:
  /// Of planes with the whole boxes of `part` at these offsets.
  UnitCut(const ModelPart& part, const std::vector<std::int64_t>& offsets);

  std::size_t num_units() const {
    return units_.size();
  }
  /// This copy's elements of the unit become the sum over the copies; the rest
  /// is left as it was.
  void sum_own(std::size_t unit, float* plane, net::Collectives& dp);
  /// Everybody's elements of the unit from their owners.
  void gather(std::size_t unit, float* plane, net::Collectives& dp);

private:
  struct Segment { // a box, in the plane
    std::int64_t offset = 0;
    std::int64_t count = 0;
  };
  struct Unit {
    std::vector<Segment> segments;
    std::int64_t size = 0;
  };

  /// Copies elements [first, end) of the flat unit from or to the plane.
  static void pack(const Unit& unit, std::int64_t first, std::int64_t end,
                   const float* plane, float* flat);
  static void unpack(const Unit& unit, std::int64_t first, std::int64_t end,
                     const float* flat, float* plane);

  std::vector<Unit> units_;
  AlignedFloats buffer_{nullptr}; ///< of the device
};

/// A plane that holds this copy's parts becomes, in `whole`, one with all boxes
/// of `part` at their padded offsets. All copies call it together.
void gather_plane(const ModelPart& part, const float* own, float* whole,
                  net::Collectives& dp);

} // namespace troupe::models
