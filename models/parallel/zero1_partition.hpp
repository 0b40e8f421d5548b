// How z1 cuts the parts of a model over dp: each unit (embedding, layer, final
// norm and head) is one flat run of elements, of which dp rank i has the i-th
// ceil-sized part (plans::Layout); experts that are dealt to dp ranks are units
// cut over the ranks that hold the same ones. Reduce-scatter and all-gather of
// a unit go through one packed buffer, because a plane has padding between
// parameters.
#pragma once

#include "models/kernels/aligned_floats.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/run_context.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

class Backend;

class Zero1Partition {
public:
  /// Partitions planes that hold the whole boxes of `part` at these offsets, in
  /// the backend's memory.
  Zero1Partition(const LocalModel& part,
                 const std::vector<std::int64_t>& offsets, Backend& backend);

  std::size_t num_units() const {
    return units_.size();
  }
  /// Reduce-scatters the unit: this rank's elements become the sum over dp; the
  /// rest is left unchanged.
  void sum_own(std::size_t unit, float* plane, const Groups& groups);
  /// All-gathers the unit's elements from their owners.
  void gather(std::size_t unit, float* plane, const Groups& groups);

private:
  struct Segment { // a box, in the plane
    std::int64_t offset = 0;
    std::int64_t count = 0;
  };
  struct Unit {
    std::vector<Segment> segments;
    std::int64_t size = 0;
    bool is_dealt = false; ///< experts of some dp ranks
  };

  /// Copies elements [first, end) of the flat unit from or to the plane.
  void pack(const Unit& unit, std::int64_t first, std::int64_t end,
            const float* plane, float* flat);
  void unpack(const Unit& unit, std::int64_t first, std::int64_t end,
              const float* flat, float* plane);

  Backend& backend_;
  std::vector<Unit> units_;
  AlignedFloats buffer_;
};

/// Gathers a plane that holds this rank's parts into `whole`, a plane with all
/// boxes of `part` at their padded offsets, both in the backend's memory.
/// Collective over dp.
void gather_plane(const LocalModel& part, Backend& backend, const float* own,
                  float* whole, const Groups& groups);

} // namespace troupe::models
