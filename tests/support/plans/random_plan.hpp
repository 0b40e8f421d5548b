// Random workflows and plans for them: lags, chunks, slices, EMA roles, planes
// that are kept, dropped and offloaded. Not every one can run: lags may make a
// step wait for itself.
#pragma once

#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

#include "tests/support/plans/support.hpp"

#include <map>
#include <random>
#include <string>
#include <vector>

namespace troupe::plans {

using Random = std::mt19937_64;

inline std::uint32_t draw(Random& random, std::uint32_t below) {
  return static_cast<std::uint32_t>(random() % below);
}

/// Returns a few roles, calls that read random earlier keys, train calls at the
/// end.
inline Workflow random_workflow(Random& random) {
  Workflow workflow{.name = "random", .dataset_keys = {"data"}};
  std::vector<std::string> keys = {"data"};
  const auto add = [&](Call call) {
    for (auto reads = 1 + draw(random, 3); reads > 0; --reads)
      call.reads.push_back(keys[draw(random, std::uint32_t(keys.size()))]);
    call.name = "call" + std::to_string(workflow.calls.size());
    call.writes = {"key" + std::to_string(workflow.calls.size())};
    keys.push_back(call.writes.front());
    workflow.calls.push_back(std::move(call));
  };
  for (std::uint32_t i = 0; i <= draw(random, 4); ++i)
    workflow.roles.push_back(
      {.name = "role" + std::to_string(i), .trained = draw(random, 4) != 0});
  for (auto& role : workflow.roles) { // roles that no call trains may be EMA
                                      // roles
    const auto& tracked = workflow.roles[draw(
      random, static_cast<std::uint32_t>(workflow.roles.size()))];
    if (!role.trained && tracked.trained)
      role.ema = {.role = tracked.name, .every = 1 + draw(random, 3)};
  }
  const auto num_roles = static_cast<std::uint32_t>(workflow.roles.size());
  for (std::uint32_t i = 0; i < 1 + draw(random, 8); ++i) {
    if (draw(random, 4) == 0)
      add({.kind = CallKind::function});
    else
      add({.kind = CallKind::inference,
           .role = workflow.roles[draw(random, num_roles)].name});
  }
  for (const auto& role : workflow.roles)
    for (std::uint32_t i = 0; role.trained && i <= draw(random, 5) / 4; ++i)
      add({.kind = CallKind::train, .role = role.name});
  return workflow;
}

inline ExecutionPlan random_plan(const Workflow& workflow, Random& random) {
  ExecutionPlan plan;
  plan.cluster.devices_per_node = 1 + draw(random, 6);
  std::map<std::string, Placement> homes;
  for (const auto& call : workflow.calls) {
    const auto first = draw(random, plan.cluster.devices_per_node);
    const auto last
      = first + draw(random, plan.cluster.devices_per_node - first);
    auto& placement = plan.calls[call.name];
    if (call.kind == CallKind::function)
      continue;
    placement = on(first, last);
    if (call.kind == CallKind::train || draw(random, 3) == 0)
      placement = homes.try_emplace(call.role, placement).first->second;
    if (call.kind != CallKind::train && draw(random, 4) == 0)
      placement.chunks = 1 + static_cast<int>(draw(random, 4));
    const bool may_lag
      = call.kind != CallKind::train && workflow.role(call.role).changes();
    if (may_lag && draw(random, 3) == 0)
      plan.lag[call.name] = 1 + draw(random, 3);
    if (may_lag && placement.chunks == 1 && draw(random, 4) == 0)
      placement.slices = 1 + static_cast<int>(draw(random, 4));
    if (draw(random, 4) == 0)
      plan.replicas[call.role + "@" + call.name] = true;
  }
  for (const auto& role : workflow.roles)
    plan.roles[role.name] = {.offload_weights = draw(random, 4) == 0,
                             .offload_optimizer = draw(random, 4) == 0};
  for (const auto& call : workflow.calls) // the plan check refuses slices then
    if (!call.role.empty() && plan.roles[call.role].offload_weights)
      plan.calls[call.name].slices = 1;
  return plan;
}

} // namespace troupe::plans
