#include "models/parallel/full_parameters.hpp"

#include "config/base/error.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/parallel/zero1_partition.hpp"
#include "net/collectives/collectives.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

plans::Layout whole_layout(const LocalModel& part) {
  Strategy few = part.strategy; // dp ranks that have all between them
  few.dp = few.expert_group_dp();
  few.zero = Zero::none;
  std::vector<Rank> devices;
  for (std::uint32_t i = 0; i < few.num_devices(); ++i)
    devices.emplace_back(i);
  return plans::make_layout(part.staged(), few, devices, DType::f32);
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
    if (shard.where.pp == part.where.pp && shard.where.dp == 0)
      boxes.push_back(*whole_box(shard, parameter));
  return boxes;
}

// Returns the first device of a stage that has the parameter; null: none.
const Coordinate* whole_owner(const plans::Layout& layout, std::uint32_t stage,
                              std::uint32_t parameter) {
  const auto found = std::ranges::find_if(
    layout.shards, [&](const plans::Shard& shard) {
      return shard.where.pp == stage && whole_box(shard, parameter) != nullptr;
    });
  return found == layout.shards.end() ? nullptr : &found->where;
}

// Brings an expert to all devices of the stage: from the dp rank that has it to
// the others, and from there over the tp group.
std::span<const float> whole_expert(const Coordinate& owner,
                                    const LocalModel& part, const float* mine,
                                    std::size_t size, const Groups& groups,
                                    std::vector<float>& room) {
  const bool owns = owner.dp == part.where.dp && owner.tp == part.where.tp;
  if (owns)
    room.assign(mine, mine + size);
  room.resize(size);
  if (part.strategy.expert_group_dp() > 1 && owner.tp == part.where.tp)
    groups.dp->broadcast(room.data(), size, DType::f32, owner.dp,
                         "whole tensors");
  if (groups.tp != nullptr)
    groups.tp->broadcast(room.data(), size, DType::f32, owner.tp,
                         "whole tensors");
  return room;
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
// `mine` is null if other devices of the stage have it.
std::span<const float> whole_tensor(const plans::Layout& layout,
                                    const LocalModel& part,
                                    std::uint32_t parameter, const float* mine,
                                    const Groups& groups,
                                    std::vector<float>& room) {
  const ParameterShape& shape = part.parameters[parameter];
  const auto size = static_cast<std::size_t>(shape.num_elements());
  if (part.strategy.ep > 1 && shape.expert >= 0)
    return whole_expert(*whole_owner(layout, part.where.pp, parameter), part,
                        mine, size, groups, room);
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
  std::uint32_t stage = 0;
  while (whole_owner(layout, stage, parameter) == nullptr)
    ++stage;
  return stage;
}

bool whole_is_cut(const LocalModel& part, Plane plane) {
  const bool moment = layout_kind(plane) == plans::LayoutKind::optimizer;
  return part.strategy.dp > 1
         && (part.strategy.zero == Zero::z3
             || (moment && part.strategy.zero == Zero::z1));
}

} // namespace

bool FullParameters::gives(const LocalModel& part, Plane plane) {
  return part.where.dp == 0 || whole_is_cut(part, plane)
         || part.strategy.expert_group_dp() > 1;
}

FullParameters::FullParameters(const LocalModel& part,
                               const Parameters& parameters, Plane plane,
                               const Groups& groups, bool keeps)
  : owned_(part.parameters.size()),
    tensors_(part.parameters.size()) {
  const plans::Layout layout = whole_layout(part);
  values_ = std::make_unique<const net::HostRead>(parameters.read(plane));
  const float* base = values_->floats();
  const PaddedOffsets room = padded_offsets(part.local_parameters);
  if (whole_is_cut(part, plane)) {
    part_.resize(static_cast<std::size_t>(room.size));
    gather_plane(part, host_backend(), base, {part_.data()}, groups);
    base = part_.data();
  }
  std::vector<float> passing; // buffer for another stage's tensor that is not
                              // kept
  for (std::uint32_t p = 0; p < part.parameters.size(); ++p) {
    const auto size
      = static_cast<std::size_t>(part.parameters[p].num_elements());
    const auto mine = std::ranges::find(
      part.boxes, p, [](const PartBox& box) { return box.box.parameter; });
    std::span<const float> found;
    if (whole_owner(layout, part.where.pp, p) != nullptr) {
      const auto i = static_cast<std::size_t>(mine - part.boxes.begin());
      const float* at
        = mine == part.boxes.end() ? nullptr : base + room.offsets[i];
      found = whole_tensor(layout, part, p, at, groups, owned_[p]);
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
