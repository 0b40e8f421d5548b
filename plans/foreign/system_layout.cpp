#include "plans/foreign/system_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

Placement placement_of(const LayoutPart& part) {
  Placement placement{.strategy = part.strategy,
                      .micro_batch_tokens = part.micro_batch_tokens};
  for (std::uint32_t i = 0; i < part.count; ++i)
    placement.devices.emplace_back(part.first + i);
  return placement;
}

bool has_own_part(const SystemLayout& layout, const std::string& role) {
  return role == "critic" || role == "ref" || role == "reward"
           ? layout.part_of(role).count > 0
           : false;
}

} // namespace

bool SystemLayout::is_colocated() const {
  return std::ranges::all_of(
    std::initializer_list<const LayoutPart*>{&actor, &critic, &ref, &reward},
    [&](const LayoutPart* part) {
      return part->count == 0
             || (part->first == generation.first
                 && part->count == generation.count);
    });
}

const LayoutPart& SystemLayout::part_of(const std::string& role) const {
  if (role == "critic")
    return critic;
  if (role == "ref")
    return ref;
  return role == "reward" ? reward : actor;
}

ExecutionPlan plan_of(const SystemLayout& layout, const Workflow& workflow,
                      const Cluster& cluster) {
  ExecutionPlan plan{.cluster = cluster};
  for (const auto& call : workflow.calls) {
    if (call.kind == CallKind::function) {
      plan.calls[call.name] = {};
      continue;
    }
    const bool generates = call.kind == CallKind::generate;
    const auto& part = generates ? layout.generation
                       : has_own_part(layout, call.role)
                         ? layout.part_of(call.role)
                         : layout.actor;
    plan.calls[call.name] = placement_of(part);
    if (!generates)
      continue;
    plan.calls[call.name].micro_batch_tokens = 0;
    if (!layout.engine_sleeps && layout.is_split())
      plan.replicas[call.role + "@" + call.name] = true;
    if (layout.lag > 0)
      plan.lag[call.name] = layout.lag;
  }
  for (const auto& role : workflow.roles) {
    const auto& part = has_own_part(layout, role.name)
                         ? layout.part_of(role.name)
                         : layout.actor;
    const RoleMemory memory{.offload_weights = part.offload_weights,
                            .offload_optimizer
                            = part.offload_optimizer && role.trained};
    if (memory != RoleMemory{})
      plan.roles[role.name] = memory;
  }
  return plan;
}

std::string print(const SystemLayout& layout) {
  std::string text;
  const auto add = [&](const char* name, const LayoutPart& part) {
    if (part.count == 0)
      return;
    text
      += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", name,
                     part.count == 1 ? std::to_string(part.first)
                                     : fmt::format("{}-{}", part.first,
                                                   part.first + part.count - 1),
                     to_string(part.strategy));
    if (part.offload_weights)
      text += part.offload_optimizer ? " offloaded" : " weights offloaded";
    else if (part.offload_optimizer)
      text += " optimizer offloaded";
  };
  add("generation", layout.generation);
  add("actor", layout.actor);
  add("critic", layout.critic);
  add("ref", layout.ref);
  add("reward", layout.reward);
  if (layout.lag > 0)
    text += fmt::format(", lag {}", layout.lag);
  return text;
}

} // namespace troupe::plans
