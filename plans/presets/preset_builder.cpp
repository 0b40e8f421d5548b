#include "plans/presets/preset_builder.hpp"

#include "config/base/error.hpp"
#include "plans/plan/strategy_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace troupe::plans::internal {

namespace {

/// A parameter's 16-bit weight and gradient, fp32 master weight and moments.
constexpr double state_bytes = 16;

} // namespace

std::vector<DeviceSpan> cut_span(DeviceSpan whole,
                                 std::span<const double> weights) {
  TROUPE_CHECK(whole.count >= weights.size(), "fewer devices than groups");
  const auto total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto spare = whole.count - static_cast<std::uint32_t>(weights.size());
  std::vector<std::uint32_t> counts;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::uint32_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto share = spare * weights[i] / total;
    counts.push_back(1 + static_cast<std::uint32_t>(share));
    given += counts.back();
    remainders.emplace_back(-(share - static_cast<std::uint32_t>(share)), i);
  }
  std::ranges::sort(remainders);
  for (std::size_t i = 0; given < whole.count; ++i, ++given)
    ++counts[remainders[i % remainders.size()].second];
  std::vector<DeviceSpan> spans;
  for (const auto count : counts) {
    spans.push_back({whole.first, count});
    whole.first += count;
  }
  return spans;
}

std::vector<const Call*> PresetBuilder::calls(CallKind kind) const {
  std::vector<const Call*> found;
  for (const auto& call : workflow_.calls)
    if (call.kind == kind)
      found.push_back(&call);
  return found;
}

void PresetBuilder::place(const Call& call, DeviceSpan span,
                          Strategy strategy) {
  Placement placement{.strategy = strategy};
  for (std::uint32_t i = 0; i < span.count; ++i)
    placement.devices.emplace_back(span.first + i);
  plan_.calls[call.name] = std::move(placement);
}

void PresetBuilder::place_data_parallel(const Call& call, DeviceSpan span) {
  place(call, span, {.dp = span.count});
}

void PresetBuilder::place_sharded(const Call& call, DeviceSpan span) {
  place(call, span,
        nearest_strategy({.dp = span.count, .zero = Zero::z3}, span.count,
                         shape_of(call.role)));
}

/// Returns whether weights, gradients and optimizer of one call fit into half
/// of the memory.
bool PresetBuilder::fits(const Call& call, const Strategy& strategy) const {
  constexpr double master_and_moments_bytes = 12;
  if (facts_.device_memory_bytes == 0)
    return true;
  const auto count = num_parameters_of(call.role);
  auto bytes = count * static_cast<double>(facts_.weight_element_bytes);
  if (call.kind == CallKind::train)
    bytes = 2 * bytes
            + count * master_and_moments_bytes
                / (strategy.zero == Zero::none ? 1 : strategy.dp);
  return bytes / (strategy.tp * strategy.pp)
         <= static_cast<double>(facts_.device_memory_bytes) / 2;
}

bool PresetBuilder::holds_sharded(const std::vector<std::string>& roles,
                                  std::uint32_t parts) const {
  constexpr double most = 0.85; // the rest is for activations
  const auto memory = static_cast<double>(facts_.device_memory_bytes);
  double bytes = 0;
  for (const auto& role : roles)
    bytes += num_parameters_of(role)
             * (workflow_.role(role).trained
                  ? state_bytes
                  : static_cast<double>(facts_.weight_element_bytes));
  return memory == 0 || bytes / parts <= most * memory;
}

bool PresetBuilder::fits_sharded(const std::string& role,
                                 std::uint32_t parts) const {
  const auto half = static_cast<double>(facts_.device_memory_bytes) / 2;
  return half == 0 || !workflow_.role(role).trained
         || num_parameters_of(role) * state_bytes / parts <= half;
}

void PresetBuilder::place_fitting(const Call& call, DeviceSpan span) {
  const auto shape = shape_of(call.role);
  const auto node = plan_.cluster.devices_per_node;
  Strategy strategy{.dp = span.count};
  for (std::uint32_t degree = 2; !fits(call, strategy) && degree <= span.count;
       degree *= 2) {
    const auto tp = largest_tp(shape, std::min(degree, node), span.count);
    const auto pp = largest_pp(shape, degree / tp, span.count / tp);
    strategy = {.dp = span.count / tp / pp, .pp = pp, .tp = tp};
    const bool trains = call.kind == CallKind::train;
    strategy.zero = trains && strategy.dp > 1 ? Zero::z1 : Zero::none;
  }
  place(call, span, strategy);
}

void PresetBuilder::place_gathered(const Call& call, DeviceSpan span) {
  const auto shape = shape_of(call.role);
  const auto weights = num_parameters_of(call.role)
                       * static_cast<double>(facts_.weight_element_bytes
                                             + facts_.copy_element_bytes);
  // Half of the memory stays for the KV cache and the sharded training state.
  const auto room = static_cast<double>(facts_.device_memory_bytes) / 2;
  const auto node = plan_.cluster.devices_per_node;
  std::uint32_t tp = 1;
  for (std::uint32_t degree = 2; degree <= node; degree *= 2) {
    const bool enough = room > 0 ? weights / tp <= room : tp > 1;
    if (enough || largest_tp(shape, degree, span.count) != degree)
      break;
    tp = degree;
  }
  place(call, span, {.dp = span.count / tp, .tp = tp});
}

void PresetBuilder::place_tensor(const Call& call, DeviceSpan span,
                                 std::uint32_t tp_limit) {
  const auto shape = shape_of(call.role);
  const auto nodes = nodes_of(span);
  const auto pp = largest_pp(shape, nodes, span.count);
  const auto a_stage = span.count / pp;
  const auto limit = std::min(tp_limit, plan_.cluster.devices_per_node);
  const auto tp = largest_tp(shape, limit, a_stage);
  place(call, span, {.dp = a_stage / tp, .pp = pp, .tp = tp});
}

std::uint32_t PresetBuilder::nodes_of(DeviceSpan span) const {
  const auto& cluster = plan_.cluster;
  return cluster.node_of(Rank{span.first + span.count - 1})
         - cluster.node_of(Rank{span.first}) + 1;
}

ModelShape PresetBuilder::shape_of(const std::string& role) const {
  const auto found = facts_.shapes.find(role);
  return found == facts_.shapes.end() ? ModelShape{} : found->second;
}

double PresetBuilder::num_parameters_of(const std::string& role) const {
  const auto [found, added] = num_parameters_.try_emplace(role, 1.0);
  const auto shape = facts_.shapes.find(role);
  if (added && shape != facts_.shapes.end())
    found->second = static_cast<double>(num_parameters(shape->second));
  return found->second;
}

void PresetBuilder::need_devices(std::uint32_t count, const std::string& why,
                                 const std::string& instead) const {
  const auto have = plan_.cluster.num_devices();
  if (have < count)
    throw PlanError(
      {.place = {},
       .path = "plan",
       .expected = fmt::format("at least {} devices for preset {}, {}", count,
                               name_, why),
       .got = std::to_string(have),
       .hint = instead});
}

void PresetBuilder::need_kind(CallKind kind) const {
  if (calls(kind).empty())
    throw PlanError({.place = {},
                     .path = "plan",
                     .expected = fmt::format(
                       "a workflow with a call of kind {} for preset {}",
                       to_string(kind), name_),
                     .got = workflow_.name + ", which has none",
                     .hint = "deepspeed_chat"});
}

} // namespace troupe::plans::internal
