#include "models/whole_plane.hpp"

#include "config/error.hpp"
#include "models/unit_cut.hpp"
#include "net/collectives.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

plans::Layout whole_layout(const ModelPart& part) {
  Strategy one = part.strategy;
  one.dp = 1;
  one.zero = Zero::none;
  std::vector<Rank> devices;
  for (std::uint32_t i = 0; i < one.num_devices(); ++i)
    devices.emplace_back(i);
  return plans::make_layout(part.parameters, one, devices, DType::f32);
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

// Boxes of this stage's tensor peers for one parameter, in peer order.
std::vector<plans::Box> whole_peer_boxes(const plans::Layout& layout,
                                         const ModelPart& part,
                                         std::uint32_t parameter) {
  std::vector<plans::Box> boxes;
  for (const plans::Shard& shard : layout.shards)
    if (shard.where.pp == part.where.pp)
      boxes.push_back(*whole_box(shard, parameter));
  return boxes;
}

// Everybody's box of one parameter, put in place where `whole` is there.
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

// One parameter that this stage has: in place, or gathered into `room`.
std::span<const float> whole_tensor(const plans::Layout& layout,
                                    const ModelPart& part,
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

// The first stage that has a parameter.
std::uint32_t whole_stage(const plans::Layout& layout,
                          std::uint32_t parameter) {
  std::uint32_t first = ~0U;
  for (const plans::Shard& shard : layout.shards)
    if (whole_box(shard, parameter) != nullptr)
      first = std::min(first, shard.where.pp);
  return first;
}

bool whole_is_cut(const ModelPart& part, Plane plane) {
  const bool moment = plane == Plane::m || plane == Plane::v;
  return part.strategy.dp > 1
         && (part.strategy.zero == Zero::z3
             || (moment && part.strategy.zero == Zero::z1));
}

} // namespace

bool WholePlane::gives(const ModelPart& part, Plane plane) {
  return part.where.dp == 0 || whole_is_cut(part, plane);
}

WholePlane::WholePlane(const ModelPart& part, const Parameters& parameters,
                       Plane plane, const Groups& groups, bool keeps)
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
  std::vector<float> passing; // another stage's tensor on its way
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
