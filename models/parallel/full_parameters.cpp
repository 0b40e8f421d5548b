#include "models/parallel/full_parameters.hpp"

#include "config/base/error.hpp"
#include "models/parallel/zero1_partition.hpp"
#include "net/collectives/collectives.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

plans::Layout whole_layout(const LocalModel& part) {
  Strategy one = part.strategy;
  one.dp = 1;
  one.zero = Zero::none;
  std::vector<Rank> devices;
  for (std::uint32_t i = 0; i < one.num_devices(); ++i)
    devices.emplace_back(i);
  return plans::make_layout(part.staged(), one, devices, DType::f32);
}

const plans::Box* whole_box(const plans::Shard& shard,
                            std::uint32_t parameter) {
  const auto found
    = std::ranges::find(shard.boxes, parameter, &plans::Box::parameter);
  return found == shard.boxes.end() ? nullptr : &*found;
}

void whole_place(const plans::Box& box, std::int64_t cols, const float* from,
                 float* whole) {
  const std::int64_t width = box.col1 - box.col0;
  for (std::int64_t row = box.row0; row < box.row1; ++row, from += width)
    std::copy_n(from, width, whole + row * cols + box.col0);
}

// Returns the boxes of this stage's tp ranks for one parameter, in rank order.
std::vector<plans::Box> whole_peer_boxes(const plans::Layout& layout,
                                         const LocalModel& part,
                                         std::uint32_t parameter) {
  std::vector<plans::Box> boxes;
  for (const plans::Shard& shard : layout.shards)
    if (shard.where.pp == part.where.pp)
      boxes.push_back(*whole_box(shard, parameter));
  return boxes;
}

// Gathers all ranks' boxes of one parameter, into `whole` if it is not null.
void whole_gather(const std::vector<plans::Box>& boxes, const float* mine,
                  std::int64_t cols, net::Collectives& tp, float* whole) {
  std::int64_t most = 0;
  for (const plans::Box& box : boxes)
    most = std::max(most, box.num_elements());
  std::vector<float> all(static_cast<std::size_t>(most) * boxes.size());
  float* own = all.data() + most * tp.rank();
  std::copy_n(mine, boxes[tp.rank()].num_elements(), own);
  tp.all_gather(own, all.data(), static_cast<std::size_t>(most), DType::f32,
                "whole tensors");
  if (whole == nullptr)
    return;
  for (std::size_t peer = 0; peer < boxes.size(); ++peer)
    whole_place(boxes[peer], cols,
                all.data() + most * static_cast<std::int64_t>(peer), whole);
}

// Returns one parameter of this stage: in place, or gathered into `room`.
std::span<const float> whole_tensor(const plans::Layout& layout,
                                    const LocalModel& part,
                                    std::uint32_t parameter, const float* mine,
                                    const Groups& groups,
                                    std::vector<float>& room) {
  const ParameterShape& shape = part.parameters[parameter];
  const auto size = static_cast<std::size_t>(shape.num_elements());
  if (part.strategy.tp == 1)
    return {mine, size};
  TROUPE_CHECK(groups.tp != nullptr, "tensor peers without a group");
  const bool wanted = part.where.tp == 0;
  if (wanted)
    room.resize(size);
  whole_gather(whole_peer_boxes(layout, part, parameter), mine, shape.cols,
               *groups.tp, wanted ? room.data() : nullptr);
  return room;
}

// Returns the first stage that has the parameter.
std::uint32_t whole_stage(const plans::Layout& layout,
                          std::uint32_t parameter) {
  std::uint32_t first = ~0U;
  for (const plans::Shard& shard : layout.shards)
    if (whole_box(shard, parameter) != nullptr)
      first = std::min(first, shard.where.pp);
  return first;
}

bool whole_is_cut(const LocalModel& part, Plane plane) {
  const bool moment = layout_kind(plane) == plans::LayoutKind::optimizer;
  return part.strategy.dp > 1
         && (part.strategy.zero == Zero::z3
             || (moment && part.strategy.zero == Zero::z1));
}

} // namespace

bool FullParameters::gives(const LocalModel& part, Plane plane) {
  return part.where.dp == 0 || whole_is_cut(part, plane);
}

FullParameters::FullParameters(const LocalModel& part,
                               const Parameters& parameters, Plane plane,
                               const Groups& groups, bool keeps)
  : owned_(part.parameters.size()),
    tensors_(part.parameters.size()) {
  const plans::Layout layout = whole_layout(part);
  const float* base = parameters.plane(plane).data();
  const PaddedOffsets room = padded_offsets(part.local_parameters);
  if (whole_is_cut(part, plane)) {
    part_.resize(static_cast<std::size_t>(room.size));
    gather_plane(part, base, part_.data(), *groups.dp);
    base = part_.data();
  }
  std::vector<float> passing; // buffer for another stage's tensor that is not
                              // kept
  for (std::uint32_t p = 0; p < part.parameters.size(); ++p) {
    const auto size
      = static_cast<std::size_t>(part.parameters[p].num_elements());
    const auto mine = std::ranges::find(
      part.boxes, p, [](const PartBox& box) { return box.box.parameter; });
    const bool here = mine != part.boxes.end();
    std::span<const float> found;
    if (here) {
      const auto i = static_cast<std::size_t>(mine - part.boxes.begin());
      found = whole_tensor(layout, part, p, base + room.offsets[i], groups,
                           owned_[p]);
    }
    if (part.strategy.pp > 1 && part.where.tp == 0) {
      const std::uint32_t root = whole_stage(layout, p);
      std::vector<float>& whole = keeps ? owned_[p] : passing;
      if (root == part.where.pp && found.data() != whole.data())
        whole.assign(found.begin(), found.end());
      whole.resize(size);
      groups.pp->broadcast(whole.data(), size, DType::f32, root,
                           "whole tensors");
      found = whole;
    }
    if (keeps)
      tensors_[p] = found;
    else
      owned_[p] = {};
  }
}

} // namespace troupe::models
