// Kinds of nodes in a search space: which meshes are on which, and memory that
// differs between devices.
#include "plans/plan/strategy_rules.hpp"
#include "plans/search/search_space.hpp"
#include "plans/workflow/context_share.hpp"

#include <algorithm>
#include <limits>

namespace troupe::plans {

std::uint64_t SearchSpace::memory_bytes() const {
  return is_mixed() ? nodes_.most_bytes : memory_bytes(0);
}

std::uint64_t SearchSpace::memory_bytes(KindSet kinds) const {
  const auto bytes
    = kinds == 0 ? problem_.device_memory_bytes()
                 : usable_bytes(slowest_of(problem_.hardware.kinds, kinds));
  return bytes > 0 ? bytes : std::numeric_limits<std::uint64_t>::max();
}

std::uint64_t SearchSpace::missing_bytes(std::uint32_t device) const {
  if (!is_mixed())
    return 0;
  const auto node = problem_.cluster.node_of(Rank{device});
  return nodes_.most_bytes - nodes_.bytes[node];
}

KindSet SearchSpace::kinds_at(std::uint32_t position,
                              std::uint32_t count) const {
  if (!is_mixed())
    return 0;
  const auto node = problem_.cluster.devices_per_node;
  return problem_.hardware.kinds_of(position / node,
                                    (position + count + node - 1) / node);
}

void SearchSpace::tell_nodes_apart() {
  const auto& hardware = problem_.hardware;
  for (std::uint32_t node = 0; node < problem_.cluster.nodes; ++node) {
    const auto kind = hardware.kind_of(node);
    nodes_.bytes.push_back(memory_bytes(KindSet{1} << kind));
    if (node > 0 && kind != hardware.kind_of(node - 1))
      nodes_.kind_starts.push_back(node * problem_.cluster.devices_per_node);
  }
  nodes_.most_bytes = std::ranges::max(nodes_.bytes);
}

/// Returns the sets of kinds under aligned meshes of so many devices.
std::set<KindSet> SearchSpace::kind_sets(std::uint32_t num_devices) const {
  std::set<KindSet> sets;
  for (auto at = align(0, num_devices); at + num_devices <= this->num_devices();
       at = align(at + 1, num_devices))
    sets.insert(kinds_at(at, num_devices));
  return sets;
}

/// Returns a device of the mesh with the least memory.
std::uint32_t SearchSpace::tightest_device(std::uint32_t position,
                                           std::uint32_t count) const {
  auto tightest = position;
  for (auto at = position; at < position + count && is_mixed(); ++at)
    if (missing_bytes(at) > missing_bytes(tightest))
      tightest = at;
  return tightest;
}

std::uint32_t SearchSpace::align(std::uint32_t from,
                                 const CallOption& option) const {
  const auto count = option.num_devices;
  auto at = align(from, count);
  while (at + count <= num_devices() && kinds_at(at, count) != option.kinds)
    at = align(at + 1, count);
  return at;
}

SecondModels SearchSpace::second_of(const Call& call) const {
  return {call, problem_.shapes, problem_.dtypes};
}

/// Returns whether the servers that generate, if any, and the models that speak
/// beside the call's can be used like this, and tokens cut (plans/check/
/// server_limits.cpp, second_limits.cpp, context_limits.cpp).
bool SearchSpace::allows(const Call& call, const Strategy& strategy) const {
  for (const auto& second : call.by.with)
    if (!why_illegal(strategy, problem_.shapes.at(second)).empty())
      return false;
  const bool is_balanced = call.kind == CallKind::train
                           && problem_.rules.balanced_roles.contains(call.role);
  if (strategy.cp > 1
      && (is_balanced
          || strategy.cp
               > most_context_ranks(problem_.sizes.max_sequence_tokens)))
    return false;
  if (!problem_.rules.servers || call.kind != CallKind::generate
      || call.evaluates)
    return true;
  const auto given = *problem_.rules.servers;
  const auto most_tp
    = call.by.user_actor ? 1 : problem_.cluster.devices_per_node;
  return strategy.pp == 1 && strategy.tp <= most_tp
         && (given == 0 || strategy.dp == given);
}

} // namespace troupe::plans
