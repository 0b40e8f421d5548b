#include "models/parallel/zero1_partition.hpp"

#include "config/base/error.hpp"
#include "config/model/product_operands.hpp"
#include "models/kernels/backend.hpp"
#include "models/parallel/ordered_collectives.hpp"
#include "models/parallel/parameters.hpp"
#include "net/collectives/collectives.hpp"

#include <algorithm>
#include <utility>

namespace troupe::models {

namespace {

// Calls body(offset in the plane, place in the unit, count) for the parts of
// elements [first, end) in each segment.
template <class Segments, class Body>
void cut_segments(const Segments& segments, std::int64_t first,
                  std::int64_t end, const Body& body) {
  std::int64_t at = 0;
  for (const auto& segment : segments) {
    const std::int64_t from = std::max(first, at);
    const std::int64_t to = std::min(end, at + segment.count);
    if (from < to)
      body(segment.offset + from - at, from, to - from);
    at += segment.count;
  }
}

std::int64_t cut_run(std::int64_t size, std::uint32_t dp_ranks) {
  return (size + dp_ranks - 1) / dp_ranks;
}

/// Throws if the group has failed, whose calls on streams the host has waited
/// for.
void check_streams(net::Collectives& group, const float* memory) {
  if (net::StreamCollectives* streams = group.on_streams(memory))
    streams->check();
}

} // namespace

Zero1Partition::Zero1Partition(const LocalModel& part,
                               const std::vector<std::int64_t>& offsets,
                               Backend& backend)
  : backend_(backend),
    buffer_(backend.memory()) {
  for (const plans::GatherBuffer& window : part.windows.units) {
    Unit& unit = units_.emplace_back();
    unit.size = window.size;
    unit.is_dealt = window.is_dealt;
    unit.unrounded = UnroundedGather(part, window, offsets);
    for (std::size_t i = window.first_box; i < window.end_box; ++i)
      unit.segments.push_back({offsets[i], part.boxes[i].box.num_elements()});
  }
}

void Zero1Partition::pack(const Unit& unit, std::int64_t first,
                          std::int64_t end, ConstTypedPtr plane,
                          TypedPtr flat) {
  cut_segments(unit.segments, first, end,
               [&](std::int64_t offset, std::int64_t at, std::int64_t count) {
                 backend_.copy(plane + offset, flat + at, count);
               });
}

void Zero1Partition::unpack(const Unit& unit, std::int64_t first,
                            std::int64_t end, ConstTypedPtr flat,
                            TypedPtr plane) {
  cut_segments(unit.segments, first, end,
               [&](std::int64_t offset, std::int64_t at, std::int64_t count) {
                 backend_.copy(flat + at, plane + offset, count);
               });
}

float* Zero1Partition::pack_whole(const Unit& unit, const float* plane,
                                  std::uint32_t ranks) {
  const std::int64_t run = cut_run(unit.size, ranks);
  float* flat = buffer_.reserve(run * (ranks + 1));
  pack(unit, 0, unit.size, plane, flat);
  backend_.fill(flat + unit.size, run * ranks - unit.size, 0.0F);
  return flat;
}

void Zero1Partition::unpack_own(const Unit& unit, const net::Collectives& dp,
                                float* plane) {
  const std::int64_t run = cut_run(unit.size, dp.size());
  const std::int64_t first = run * dp.rank();
  const float* mine = buffer_.data() + run * dp.size();
  unpack(unit, first, std::min(unit.size, first + run), mine - first, plane);
}

void Zero1Partition::sum_own(std::size_t index, float* plane,
                             const Groups& groups) {
  const Unit& unit = units_[index];
  if (groups.holders(unit.is_dealt) == nullptr)
    return;
  net::Collectives& dp = *groups.holders(unit.is_dealt);
  const std::int64_t run = cut_run(unit.size, dp.size());
  float* flat = pack_whole(unit, plane, dp.size());
  backend_.wait();
  dp.reduce_scatter_sum(flat, flat + run * dp.size(),
                        static_cast<std::size_t>(run), DType::f32, "gradients");
  unpack_own(unit, dp, plane);
}

void Zero1Partition::start_sum(std::size_t index, float* plane,
                               const Groups& groups) {
  const Unit& unit = units_[index];
  net::Collectives* dp = groups.holders(unit.is_dealt);
  if (dp == nullptr)
    return;
  end_sum(plane); // whose buffer it is
  net::StreamCollectives* streams = dp->on_streams(plane);
  TROUPE_CHECK(streams != nullptr, "the group of a unit has no streams");
  const std::int64_t run = cut_run(unit.size, dp->size());
  float* flat = pack_whole(unit, plane, dp->size());
  const net::StreamTicket ticket = streams->reduce_scatter_sum(
    flat, flat + run * dp->size(), static_cast<std::size_t>(run), DType::f32,
    "gradients", net::StreamOrder::beside);
  summing_ = {index, dp, ticket};
}

void Zero1Partition::end_sum(float* plane) {
  if (!summing_)
    return;
  const Summing sums = *std::exchange(summing_, std::nullopt);
  sums.dp->on_streams(plane)->join(sums.ticket);
  unpack_own(units_[sums.unit], *sums.dp, plane);
}

void Zero1Partition::gather(TypedPtr plane, const Groups& groups) {
  for (const Unit& unit : units_)
    gather_unit(unit, plane, groups);
}

void Zero1Partition::gather_rounded(TypedPtr rounded, float* plane,
                                    const Groups& groups) {
  for (const Unit& unit : units_) {
    gather_unit(unit, rounded, groups);
    gather_unrounded(unit, plane, groups);
  }
}

void Zero1Partition::gather_unit(const Unit& unit, TypedPtr plane,
                                 const Groups& groups) {
  net::Collectives* dp = groups.holders(unit.is_dealt);
  if (dp == nullptr)
    return;
  const std::int64_t run = cut_run(unit.size, dp->size());
  const TypedPtr flat{buffer_.reserve(run * (dp->size() + 1)), plane.type()};
  const std::int64_t first = run * dp->rank();
  pack(unit, first, std::min(unit.size, first + run), plane, flat);
  gather_in_order(*dp, backend_, flat, run, "parameters");
  unpack(unit, 0, unit.size, flat, plane);
}

void Zero1Partition::gather_unrounded(const Unit& unit, float* plane,
                                      const Groups& groups) {
  net::Collectives* dp = groups.holders(unit.is_dealt);
  if (dp == nullptr || unit.unrounded.count() == 0)
    return;
  float* all = buffer_.reserve(unit.unrounded.room());
  unit.unrounded.pack(plane, dp->rank(), all, backend_);
  gather_in_order(*dp, backend_, all, unit.unrounded.count(), "parameters");
  unit.unrounded.unpack(all, plane, backend_);
}

void gather_plane(const LocalModel& part, Backend& backend, const float* own,
                  const GatheredPlane& whole, const Groups& groups) {
  const auto offsets = padded_offsets(part.local_parameters).offsets;
  for (const plans::Box& box : part.optimizer.boxes) {
    const PartBox& owner = part.owner(box.parameter);
    const std::size_t index = part.box_index(owner);
    const bool is_rounded
      = whole.rounded && read_by_products(part.local_parameters[index]);
    backend.copy(own + box.offset_bytes / sizeof(float),
                 (is_rounded ? whole.rounded : whole.plane) + offsets[index]
                   + owner.place_of(box),
                 box.num_elements());
  }
  Zero1Partition cut(part, offsets, backend);
  if (whole.rounded)
    cut.gather_rounded(whole.rounded, whole.plane, groups);
  else
    cut.gather(whole.plane, groups);
  if (groups.dp == nullptr || groups.dp->on_streams(whole.plane) == nullptr)
    return;
  backend.wait();
  for (const auto& group : {groups.dp, groups.expert_copies})
    if (group != nullptr)
      check_streams(*group, whole.plane);
}

} // namespace troupe::models
