#include "plans/presets.hpp"

#include "config/error.hpp"
#include "plans/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::plans {

namespace {

const std::vector<std::string>& later_presets() {
  static const std::vector<std::string> names
    = {"flattening",   "deepspeed_chat", "openrlhf", "openrlhf_colocated",
       "interleaving", "separation",     "megatron", "real_heuristic",
       "verl",         "async"};
  return names;
}

Placement data_parallel_on(std::uint32_t num_devices) {
  Placement placement{.strategy = {.dp = num_devices}};
  for (std::uint32_t rank = 0; rank < num_devices; ++rank)
    placement.devices.emplace_back(rank);
  return placement;
}

} // namespace

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = {"single", "data_parallel"};
  return names;
}

bool is_later_preset(std::string_view name) {
  return std::ranges::find(later_presets(), name) != later_presets().end();
}

ExecutionPlan preset(const std::string& name, const Workflow& workflow,
                     const Cluster& cluster) {
  const auto& names = preset_names();
  if (is_later_preset(name))
    throw PlanError(fmt::format("plan: preset {} comes with a later version; "
                                "this one has {}",
                                name, fmt::join(names, ", ")));
  if (std::ranges::find(names, name) == names.end())
    throw PlanError(fmt::format("plan: unknown preset '{}'; this version has "
                                "{}{}",
                                name, fmt::join(names, ", "),
                                nearest_hint(name, names)));
  const auto placement
    = data_parallel_on(name == "single" ? 1 : cluster.num_devices());
  ExecutionPlan plan{.cluster = cluster};
  for (const auto& call : workflow.calls)
    plan.calls[call.name]
      = call.kind == CallKind::function ? Placement{} : placement;
  return plan;
}

} // namespace troupe::plans
