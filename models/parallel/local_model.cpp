#include "models/parallel/local_model.hpp"

#include "config/base/error.hpp"
#include "plans/plan/strategy_rules.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::models {

namespace {

// Returns the strategy of the dp ranks that have all experts between them (one,
// if experts are not dealt to dp ranks), before z cuts anything.
Strategy uncut(Strategy strategy) {
  strategy.dp = strategy.expert_group_dp();
  strategy.zero = Zero::none;
  return strategy;
}

plans::Layout part_layout(const plans::StagedParameters& parameters,
                          const Strategy& strategy) {
  std::vector<Rank> devices;
  for (std::uint32_t i = 0; i < strategy.num_devices(); ++i)
    devices.emplace_back(i);
  return plans::make_layout(parameters, strategy, devices, DType::f32);
}

bool part_same_region(const plans::Box& a, const plans::Box& b) {
  return a.parameter == b.parameter && a.row0 == b.row0 && a.row1 == b.row1
         && a.col0 == b.col0 && a.col1 == b.col1;
}

// Compares one box with those of another coordinate.
void part_note_owner(PartBox& mine, const Coordinate& where,
                     const plans::Shard& other) {
  // boxes are in the order of parameters
  const auto own = std::ranges::equal_range(other.boxes, mine.box.parameter, {},
                                            &plans::Box::parameter);
  const bool holds = std::ranges::any_of(own, [&](const plans::Box& box) {
    return part_same_region(box, mine.box);
  });
  if (!holds || other.where.dp != where.dp || other.where == where)
    return;
  mine.over_tensor |= other.where.tp != where.tp;
  mine.over_stages |= other.where.pp != where.pp;
  const auto order = [](const Coordinate& c) { return std::pair(c.pp, c.tp); };
  mine.first_owner &= order(where) < order(other.where);
}

// Returns the intermediate size that an up projection has the rows of.
std::int64_t& local_width(const ParameterShape& up_projection,
                          ModelShape& local) {
  if (up_projection.expert >= 0)
    return local.experts.width;
  return up_projection.name.find(".shared_experts.") != std::string::npos
           ? local.experts.shared_width
           : local.intermediate_size;
}

} // namespace

LocalModel::LocalModel(const ModelShape& model, const Strategy& degrees,
                       const Coordinate& coordinate)
  : whole(model),
    strategy(degrees),
    where(coordinate),
    parameters(trained_parameters(model)),
    local(model) {
  if (const auto why = plans::why_illegal(strategy, model); !why.empty())
    throw PlanError(why);
  const Strategy few = uncut(strategy);
  const plans::Layout layout = part_layout(staged(), few);
  const Coordinate here{where.dp % few.dp, where.pp, where.tp};
  std::int32_t first = static_cast<std::int32_t>(model.num_layers);
  std::int32_t end = 0;
  for (const plans::Box& box : layout.shards[index_of(few, here)].boxes) {
    PartBox& mine = boxes.emplace_back(PartBox{.box = box});
    mine.is_dealt
      = strategy.expert_group_dp() > 1 && parameters[box.parameter].expert >= 0;
    for (const plans::Shard& other : layout.shards)
      part_note_owner(mine, here, other);
    ParameterShape shape = parameters[box.parameter];
    shape.rows = box.row1 - box.row0;
    shape.cols = box.col1 - box.col0;
    if (shape.layer >= 0 && shape.layer < model.num_layers) {
      first = std::min(first, shape.layer);
      end = std::max(end, shape.layer + 1);
    }
    if (shape.name == "model.embed_tokens.weight"
        || shape.name == "lm_head.weight")
      first_token = box.row0;
    local_parameters.push_back(std::move(shape));
  }
  std::vector<Rank> devices;
  for (std::uint32_t i = 0; i < strategy.num_devices(); ++i)
    devices.emplace_back(i);
  const auto here_in = [&](plans::LayoutKind kind) {
    return plans::make_layout(staged(), strategy, devices, DType::f32, kind)
      .shards[index_of(strategy, where)];
  };
  optimizer = here_in(plans::LayoutKind::optimizer);
  held = here_in(plans::LayoutKind::weights);
  std::vector<plans::Box> whole_here;
  for (const PartBox& mine : boxes)
    whole_here.push_back(mine.box);
  windows = plans::gather_buffers(parameters, whole_here, strategy);
  first_layer = first;
  local.num_layers = std::max(0, end - first);
  local.num_heads = model.num_heads / strategy.tp;
  local.num_kv_heads
    = std::max<std::int64_t>(1, model.num_kv_heads / strategy.tp);
  for (const ParameterShape& shape : local_parameters)
    if (shape.name.ends_with("up_proj.weight"))
      local_width(shape, local) = shape.rows;
}

const PartBox& LocalModel::owner(std::uint32_t parameter) const {
  const auto of = [](const PartBox& one) { return one.box.parameter; };
  const auto found = std::ranges::lower_bound(boxes, parameter, {}, of);
  TROUPE_CHECK(found != boxes.end() && of(*found) == parameter,
               "a parameter of another device");
  return *found;
}

} // namespace troupe::models
