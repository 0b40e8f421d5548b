#include "plans/weights/replicas.hpp"

#include "config/base/error.hpp"
#include "plans/weights/device_order.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

Replica& replica_for(Replicas& replicas, const std::string& role,
                     const Placement& placement) {
  for (auto& replica : replicas.all)
    if (replica.role == role && replica.devices == placement.devices
        && replica.strategy == placement.strategy)
      return replica;
  replicas.all.push_back({.id = ReplicaId{replicas.all.size()},
                          .role = role,
                          .devices = placement.devices,
                          .strategy = placement.strategy,
                          .calls = {}});
  return replicas.all.back();
}

void choose_home(const Workflow& workflow, const std::string& role,
                 Replicas& replicas) {
  const Call* first_train = nullptr;
  const Call* first_use = nullptr;
  for (const auto& call : workflow.calls) {
    if (call.role != role)
      continue;
    first_use = first_use ? first_use : &call;
    if (call.kind != CallKind::train)
      continue;
    first_train = first_train ? first_train : &call;
    if (replicas.of_call(call.name) != replicas.of_call(first_train->name))
      throw PlanError(
        {.place = {},
         .path = "calls." + call.name,
         .expected
         = fmt::format("devices and strategy of {}, which trains {} too",
                       first_train->name, role),
         .got = "others",
         .hint = fmt::format("the same line as of {}", first_train->name)});
  }
  if (const auto* home = first_train ? first_train : first_use) {
    replicas.all[replicas.of_call(home->name).value].home = true;
    return;
  }
  const auto speaks = std::ranges::find(replicas.all, role, &Replica::role);
  if (speaks != replicas.all.end())
    speaks->home = true;
}

/// Returns whether other roles speak in conversations of the replica's calls.
bool has_second_roles(const Workflow& workflow, const Replica& replica) {
  return std::ranges::any_of(replica.calls, [&](const std::string& call) {
    return !workflow.call(call).by.with.empty();
  });
}

/// Orders the devices of move targets so that most of their weights are already
/// in place. Where several roles speak, each device has the same coordinate for
/// all: the plan's order stays.
void order_targets(const Workflow& workflow, const Cluster& cluster,
                   Replicas& replicas) {
  for (auto& replica : replicas.all) {
    const auto& role = workflow.role(replica.role);
    if (!role.changes() || (replica.home && !role.ema)
        || has_second_roles(workflow, replica))
      continue;
    const auto& home
      = replicas[replicas.home(role.ema ? role.ema->role : role.name)];
    replica.devices = order_devices(mesh_of(home), mesh_of(replica), cluster);
  }
}

} // namespace

Placement mesh_of(const Replica& replica) {
  return {.devices = replica.devices, .strategy = replica.strategy};
}

ReplicaId Replicas::of_call(std::string_view call) const {
  for (const auto& replica : all)
    if (std::ranges::find(replica.calls, call) != replica.calls.end())
      return replica.id;
  TROUPE_CHECK(false, fmt::format("call '{}' has no replica", call));
  return {};
}

ReplicaId Replicas::home(std::string_view role) const {
  for (const auto& replica : all)
    if (replica.role == role && replica.home)
      return replica.id;
  TROUPE_CHECK(false, fmt::format("role '{}' has no replica", role));
  return {};
}

ReplicaId Replicas::beside(const Replica& first, std::string_view role) const {
  for (const auto& replica : all)
    if (replica.role == role && replica.devices == first.devices
        && replica.strategy == first.strategy)
      return replica.id;
  TROUPE_CHECK(false, fmt::format("role '{}' has no replica on the devices of "
                                  "{}",
                                  role, first.name()));
  return {};
}

std::vector<ReplicaId> Replicas::of_role(std::string_view role) const {
  std::vector<ReplicaId> ids;
  for (const auto& replica : all)
    if (replica.role == role)
      ids.push_back(replica.id);
  return ids;
}

Replicas replicas_of(const Workflow& workflow, const ExecutionPlan& plan) {
  Replicas replicas;
  for (const auto& call : workflow.calls) {
    if (call.kind == CallKind::function)
      continue;
    const auto placement = plan.calls.find(call.name);
    TROUPE_CHECK(placement != plan.calls.end(),
                 fmt::format("call '{}' has no placement", call.name));
    auto& replica = replica_for(replicas, call.role, placement->second);
    replica.calls.push_back(call.name);
    const auto keep = plan.replicas.find(call.role + "@" + call.name);
    if (keep != plan.replicas.end())
      replica.keep = replica.keep || keep->second;
    for (const auto& role : call.by.with)
      replica_for(replicas, role, placement->second)
        .beside.push_back(call.name);
  }
  for (const auto& role : workflow.roles)
    choose_home(workflow, role.name, replicas);
  order_targets(workflow, plan.cluster, replicas);
  return replicas;
}

} // namespace troupe::plans
