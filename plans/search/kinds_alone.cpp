#include "plans/search/kinds_alone.hpp"

#include "config/base/error.hpp"
#include "plans/search/preset_starts.hpp"
#include "plans/simulate/simulator.hpp"

#include <cstdint>

namespace troupe::plans::internal {

namespace {

std::vector<std::uint32_t> nodes_of(const PlanProblem& problem,
                                    std::uint32_t kind) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t node = 0; node < problem.cluster.nodes; ++node)
    if (problem.hardware.kind_of(node) == kind)
      nodes.push_back(node);
  return nodes;
}

/// Returns the problem on so many nodes of one kind.
PlanProblem on_one_kind(const PlanProblem& problem, const NodeKind& kind,
                        std::size_t nodes) {
  auto alone = problem;
  alone.hardware = kind.hardware;
  alone.profile = kind.profile;
  alone.cluster.nodes = static_cast<std::uint32_t>(nodes);
  return alone;
}

/// Returns a plan of some nodes of a cluster as one of the whole.
ExecutionPlan on_nodes(ExecutionPlan plan, const Cluster& cluster,
                       const std::vector<std::uint32_t>& nodes) {
  const auto size = cluster.devices_per_node;
  for (auto& [name, place] : plan.calls)
    for (auto& device : place.devices)
      device
        = Rank{nodes[cluster.node_of(device)] * size + device.value % size};
  plan.cluster = cluster;
  return plan;
}

} // namespace

std::vector<FoundPlan> plans_on_one_kind(const PlanProblem& problem,
                                         const CostModel& costs,
                                         const SearchOptions& options) {
  std::vector<FoundPlan> plans;
  if (!problem.hardware.is_mixed())
    return plans;
  auto by_itself = options;
  by_itself.method = SearchMethod::automatic;
  const auto& kinds = problem.hardware.kinds;
  for (std::uint32_t k = 0; k < kinds.size(); ++k) {
    const auto nodes = nodes_of(problem, k);
    if (nodes.empty())
      continue;
    const auto alone = on_one_kind(problem, kinds[k], nodes.size());
    try {
      const auto found
        = search_plan(alone, costs.for_problem(alone), by_itself);
      auto plan = on_nodes(found.best.plan, problem.cluster, nodes);
      if (!check_plan(problem, plan).ok())
        continue;
      const auto step_s = simulate_step_s(problem, costs, plan);
      add_found(plans,
                {step_s, kinds[k].hardware.name + " alone", std::move(plan)});
    } catch (const PlanError&) {
      continue; // no plan fits these nodes
    }
  }
  return plans;
}

} // namespace troupe::plans::internal
