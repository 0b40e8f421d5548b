// Clusters of several kinds of nodes for tests.
#pragma once

#include "tests/support/plans/problem_support.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::plans {

/// Returns hardware with one node for each entry: shipped names, in order.
inline ClusterHardware mixed_hardware(const std::vector<std::string>& nodes) {
  std::vector<NodeKind> kinds;
  std::vector<std::uint32_t> kind_of_nodes;
  for (const auto& name : nodes) {
    std::uint32_t kind = 0;
    while (kind < kinds.size() && kinds[kind].hardware.name != name)
      ++kind;
    if (kind == kinds.size())
      kinds.push_back({.hardware = load_hardware(name)});
    kind_of_nodes.push_back(kind);
  }
  return {std::move(kinds), std::move(kind_of_nodes)};
}

/// Returns PPO of `make_problem` with a node for each entry.
inline PlanProblem make_mixed_problem(const ModelShape& shape,
                                      const std::vector<std::string>& nodes,
                                      std::uint32_t devices_per_node = 8) {
  auto problem = make_problem(shape, static_cast<std::uint32_t>(nodes.size()),
                              devices_per_node);
  problem.hardware = mixed_hardware(nodes);
  return problem;
}

/// Returns two kinds with the same numbers under two names, by turns.
inline ClusterHardware twice_the_same(const std::string& name,
                                      std::uint32_t nodes) {
  auto other = load_hardware(name);
  other.name = "the same again";
  std::vector<std::uint32_t> kind_of_nodes;
  for (std::uint32_t node = 0; node < nodes; ++node)
    kind_of_nodes.push_back(node % 2);
  return {{{.hardware = load_hardware(name)}, {.hardware = other}},
          std::move(kind_of_nodes)};
}

/// Returns h100x8 with less of everything that is per device, and its name.
inline NodeKind slower(double times, double mem_bytes) {
  auto hardware = load_hardware("h100x8");
  hardware.name = "slower";
  for (const auto rate : {&Hardware::gemm_flops, &Hardware::attn_flops,
                          &Hardware::mem_Bps, &Hardware::cache_Bps})
    hardware.*rate /= times;
  hardware.mem_bytes = mem_bytes;
  return {.hardware = std::move(hardware)};
}

/// Returns a node of h100x8 and `nodes` slower ones.
inline PlanProblem fast_and_slow(const ModelShape& shape, std::uint32_t nodes,
                                 std::uint32_t devices_per_node,
                                 double mem_bytes = 80e9) {
  auto problem = make_problem(shape, 1 + nodes, devices_per_node, "h100x8");
  std::vector<std::uint32_t> kinds(1 + nodes, 1);
  kinds[0] = 0;
  problem.hardware
    = {{{.hardware = load_hardware("h100x8")}, slower(2, mem_bytes)},
       std::move(kinds)};
  return problem;
}

/// Returns the problem on the nodes of one kind.
inline PlanProblem on_kind(const PlanProblem& problem, std::uint32_t kind) {
  auto alone = problem;
  alone.hardware = problem.hardware.kinds[kind].hardware;
  alone.cluster.nodes = static_cast<std::uint32_t>(
    std::ranges::count(problem.hardware.kind_of_nodes, kind));
  return alone;
}

} // namespace troupe::plans
