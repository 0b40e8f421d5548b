// How z1 cuts the parts of a model over dp: each unit (embedding, layer, final
// norm and head) is one flat run of elements, of which dp rank i has the i-th
// ceil-sized part (plans::Layout); experts that are dealt to dp ranks are units
// cut over the ranks that hold the same ones. Reduce-scatter and all-gather of
// a unit go through one packed buffer, because a plane has padding between
// parameters. Where groups have streams they are work of the device, for which
// the host does not wait. What only kernels read is gathered as they read it:
// rounded weights, with what they read in fp32 beside.
#pragma once

#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/typed_ptr.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/run_context.hpp"
#include "models/parallel/unrounded_gather.hpp"
#include "net/collectives/stream_collectives.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
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
  /// Starts the same on the streams of the group, which has some, beside the
  /// thread's kernels, once the sums of the unit before are in the plane.
  void start_sum(std::size_t unit, float* plane, const Groups& groups);
  /// Orders the thread's kernels after the sums that were started.
  void end_sum(float* plane);
  /// Forgets sums of a call that was aborted.
  void forget_sum() {
    summing_.reset();
  }
  /// All-gathers the elements of all units from their owners: in the order of
  /// the thread's kernels where the groups have streams.
  void gather(TypedPtr plane, const Groups& groups);
  /// All-gathers what kernels read likewise: `rounded`, and the elements of
  /// `plane` that they read in fp32.
  void gather_rounded(TypedPtr rounded, float* plane, const Groups& groups);

private:
  struct Segment { // a box, in the plane
    std::int64_t offset = 0;
    std::int64_t count = 0;
  };
  struct Unit {
    std::vector<Segment> segments;
    std::int64_t size = 0;
    bool is_dealt = false; ///< experts of some dp ranks
    UnroundedGather unrounded;
  };

  struct Summing { // of a unit, on their way in the buffer
    std::size_t unit = 0;
    net::Collectives* dp = nullptr;
    net::StreamTicket ticket;
  };

  /// Packs the unit into the buffer, which has room for this rank's sums too.
  float* pack_whole(const Unit& unit, const float* plane, std::uint32_t ranks);
  /// Takes the sums of this rank's elements from the buffer into the plane.
  void unpack_own(const Unit& unit, const net::Collectives& dp, float* plane);
  /// Copies elements [first, end) of the flat unit from or to the plane.
  void pack(const Unit& unit, std::int64_t first, std::int64_t end,
            ConstTypedPtr plane, TypedPtr flat);
  void unpack(const Unit& unit, std::int64_t first, std::int64_t end,
              ConstTypedPtr flat, TypedPtr plane);
  void gather_unit(const Unit& unit, TypedPtr plane, const Groups& groups);
  void gather_unrounded(const Unit& unit, float* plane, const Groups& groups);

  Backend& backend_;
  std::vector<Unit> units_;
  AlignedFloats buffer_;
  std::optional<Summing> summing_;
};

/// A plane with all boxes of a part at their padded offsets.
struct GatheredPlane {
  float* plane = nullptr;
  TypedPtr rounded = nullptr; ///< beside it, for kernels; null: there is none
};

/// Gathers a plane that holds this rank's parts into `whole`, both in the
/// backend's memory; of one with rounded weights what kernels read, not more.
/// Collective over dp.
void gather_plane(const LocalModel& part, Backend& backend, const float* own,
                  const GatheredPlane& whole, const Groups& groups);

} // namespace troupe::models
