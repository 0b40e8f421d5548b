#include "plans/weights/layout.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

/// Half-open range of elements.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Returns the i-th of n runs of ceil(size / n), the last ones shorter or
/// empty.
Range layout_part(std::int64_t size, std::uint32_t n, std::uint32_t i) {
  const auto chunk = (size + n - 1) / n;
  return {std::min(size, chunk * i), std::min(size, chunk * (i + 1))};
}

/// Returns the i-th tensor peer's part of `size`: a run of whole units. With
/// more peers than heads, neighbours hold copies of one head.
Range tensor_part(std::int64_t size, std::int64_t unit, std::uint32_t tp,
                  std::uint32_t i) {
  const auto units = size / unit;
  if (unit > 1 && units < tp) {
    const auto mine = units * i / tp;
    return {mine * unit, (mine + 1) * unit};
  }
  const auto run = layout_part(units, tp, i);
  return {run.begin * unit, run.end * unit};
}

/// The parameters that each stage owns, ascending.
class Stages {
public:
  Stages(const StagedParameters& parameters, std::uint32_t pp)
    : pp_(pp),
      last_layer_(parameters.num_layers),
      costs_(parameters.costs),
      layers_(static_cast<std::uint32_t>(last_layer_), pp, costs_),
      owned_(pp) {
    for (std::uint32_t i = 0; i < parameters.list.size(); ++i)
      add(i, parameters[i].layer);
  }

  const std::vector<std::uint32_t>& owned(std::uint32_t stage) const {
    return owned_[stage];
  }

private:
  void add(std::uint32_t parameter, std::int32_t layer) {
    const bool embedding = layer < 0, head = layer == last_layer_;
    if (!embedding && !head)
      return owned_[layers_.stage_of(static_cast<std::uint32_t>(layer))]
        .push_back(parameter);
    if (embedding)
      owned_.front().push_back(parameter);
    if (head || (costs_.tied && pp_ > 1))
      owned_.back().push_back(parameter);
  }

  std::uint32_t pp_;
  std::int32_t last_layer_;
  UnitCosts costs_;
  StageLayers layers_;
  std::vector<std::vector<std::uint32_t>> owned_; ///< by stage
};

/// Returns whether a coordinate has this expert of a layer.
bool has_expert(std::int32_t expert, std::int32_t num_experts,
                const Strategy& strategy, const Coordinate& where) {
  const auto part = static_cast<std::uint32_t>(num_experts) / strategy.ep;
  return static_cast<std::uint32_t>(expert) / part
         == expert_rank_of(strategy, where);
}

/// Returns the part of a parameter that a coordinate of its stage owns; an
/// expert that ep deals to another one is a box of no rows.
Box own_box(const StagedParameters& parameters, std::uint32_t index,
            const Strategy& strategy, const Coordinate& where) {
  const ParameterShape& shape = parameters[index];
  Range rows{0, shape.rows};
  Range cols{0, shape.cols};
  const bool is_dealt = strategy.ep > 1 && shape.expert >= 0;
  if (is_dealt
      && !has_expert(shape.expert, parameters.num_experts, strategy, where))
    rows = {};
  else if (!is_dealt && shape.split_dim == 0)
    rows = tensor_part(shape.rows, shape.split_unit, strategy.tp, where.tp);
  else if (!is_dealt && shape.split_dim == 1)
    cols = tensor_part(shape.cols, shape.split_unit, strategy.tp, where.tp);
  return {.parameter = index,
          .row0 = rows.begin,
          .row1 = rows.end,
          .col0 = cols.begin,
          .col1 = cols.end};
}

/// Returns the elements `flat` of a box, counted row by row, as at most three
/// boxes: the rest of a row, whole rows, the start of a row.
std::vector<Box> flat_part(const Box& box, Range flat) {
  std::vector<Box> parts;
  const auto width = box.col1 - box.col0;
  const auto add = [&](std::int64_t row0, std::int64_t row1, std::int64_t col0,
                       std::int64_t col1) {
    if (row0 < row1 && col0 < col1)
      parts.push_back({.parameter = box.parameter,
                       .row0 = box.row0 + row0,
                       .row1 = box.row0 + row1,
                       .col0 = box.col0 + col0,
                       .col1 = box.col0 + col1});
  };
  auto [at, end] = flat;
  if (at < end && at % width != 0) {
    const auto row_end = std::min(end, (at / width + 1) * width);
    add(at / width, at / width + 1, at % width, at % width + (row_end - at));
    at = row_end;
  }
  if (at < end) {
    add(at / width, end / width, 0, width);
    add(end / width, end / width + 1, 0, end % width);
  }
  return parts;
}

/// Returns the boxes of one device before z cuts them.
std::vector<Box> stage_boxes(const StagedParameters& parameters,
                             const Stages& stages, const Strategy& strategy,
                             const Coordinate& where) {
  std::vector<Box> boxes;
  for (const auto i : stages.owned(where.pp)) {
    const auto box = own_box(parameters, i, strategy, where);
    if (box.num_elements() > 0)
      boxes.push_back(box);
  }
  return boxes;
}

/// Keeps this dp rank's part of each unit.
std::vector<Box> cut_units(const StagedParameters& parameters,
                           const std::vector<Box>& whole,
                           const Strategy& strategy, std::uint32_t dp) {
  std::vector<Box> cut;
  for (std::size_t begin = 0; begin < whole.size();) {
    const UnitRun unit
      = unit_run(parameters.list, std::span(whole).subspan(begin), strategy);
    const auto mine
      = layout_part(unit.num_elements, unit_holders(strategy, unit.is_dealt),
                    unit_holder(strategy, unit.is_dealt, dp));
    std::int64_t at = 0;
    for (const auto& box : std::span(whole).subspan(begin, unit.num_boxes)) {
      const auto elements = box.num_elements();
      const Range flat{std::clamp<std::int64_t>(mine.begin - at, 0, elements),
                       std::clamp<std::int64_t>(mine.end - at, 0, elements)};
      std::ranges::move(flat_part(box, flat), std::back_inserter(cut));
      at += elements;
    }
    begin += unit.num_boxes;
  }
  return cut;
}

std::uint64_t layout_align(std::uint64_t bytes) {
  return (bytes + parameter_alignment_bytes - 1) / parameter_alignment_bytes
         * parameter_alignment_bytes;
}

/// Sets the offsets of the boxes; returns the buffer's size.
std::uint64_t place_boxes(std::vector<Box>& boxes, DType dtype) {
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (i > 0 && boxes[i].parameter != boxes[i - 1].parameter)
      at = layout_align(at);
    boxes[i].offset_bytes = at;
    at += static_cast<std::uint64_t>(boxes[i].num_elements())
          * size_bytes(dtype);
  }
  return layout_align(at);
}

/// Returns the boxes that one coordinate owns in a layout of this kind.
std::vector<Box> owned_boxes(const StagedParameters& parameters,
                             const Stages& stages, const Strategy& strategy,
                             const Coordinate& where, LayoutKind kind) {
  auto boxes = stage_boxes(parameters, stages, strategy, where);
  const bool cut
    = strategy.zero == Zero::z3
      || (strategy.zero == Zero::z1 && kind == LayoutKind::optimizer);
  return cut ? cut_units(parameters, boxes, strategy, where.dp) : boxes;
}

} // namespace

UnitRun unit_run(std::span<const ParameterShape> parameters,
                 std::span<const Box> boxes, const Strategy& strategy) {
  const auto is_dealt = [&](const Box& box) {
    return strategy.expert_group_dp() > 1
           && parameters[box.parameter].expert >= 0;
  };
  UnitRun run{.layer = parameters[boxes.front().parameter].layer,
              .is_dealt = is_dealt(boxes.front())};
  for (const Box& box : boxes) {
    if (parameters[box.parameter].layer != run.layer
        || is_dealt(box) != run.is_dealt)
      break;
    ++run.num_boxes;
    run.num_elements += box.num_elements();
  }
  return run;
}

const Shard& Layout::of(Rank device) const {
  const auto found = std::ranges::find(shards, device, &Shard::device);
  TROUPE_CHECK(found != shards.end(),
               fmt::format("device {} has no shard", device.value));
  return *found;
}

std::vector<Box> whole_boxes(const StagedParameters& parameters,
                             const Strategy& strategy,
                             const Coordinate& where) {
  return stage_boxes(parameters, Stages(parameters, strategy.pp), strategy,
                     where);
}

std::vector<std::vector<Box>> first_boxes(const StagedParameters& parameters,
                                          const Strategy& strategy) {
  const Stages stages(parameters, strategy.pp);
  std::vector<std::vector<Box>> boxes;
  for (std::uint32_t stage = 0; stage < strategy.pp; ++stage)
    boxes.push_back(stage_boxes(parameters, stages, strategy, {.pp = stage}));
  return boxes;
}

std::vector<std::uint64_t> largest_shards(const StagedParameters& parameters,
                                          const Strategy& strategy, DType dtype,
                                          LayoutKind kind) {
  const Stages stages(parameters, strategy.pp);
  std::vector<std::uint64_t> sizes;
  for (std::uint32_t stage = 0; stage < strategy.pp; ++stage) {
    auto boxes = owned_boxes(parameters, stages, strategy, {.pp = stage}, kind);
    sizes.push_back(place_boxes(boxes, dtype));
  }
  return sizes;
}

Layout make_layout(const StagedParameters& parameters, const Strategy& strategy,
                   std::span<const Rank> devices, DType dtype,
                   LayoutKind kind) {
  TROUPE_CHECK(devices.size() == strategy.num_devices(),
               fmt::format("{} devices for strategy {}", devices.size(),
                           to_string(strategy)));
  const Stages stages(parameters, strategy.pp);
  Layout layout{.dtype = dtype};
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    Shard shard{.device = devices[i], .where = coordinate_of(strategy, i)};
    shard.boxes = owned_boxes(parameters, stages, strategy, shard.where, kind);
    shard.size_bytes = place_boxes(shard.boxes, dtype);
    layout.shards.push_back(std::move(shard));
  }
  return layout;
}

} // namespace troupe::plans
