#include "plans/check/host_limits.hpp"

#include "config/base/error.hpp"
#include "plans/check/too_full.hpp"
#include "plans/memory/offloaded_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans::internal {

namespace {

/// Returns why a host has too little memory for both.
PlanMistake too_little(std::uint32_t node, std::uint64_t limit,
                       std::uint64_t offloaded, std::uint64_t served) {
  const auto of_servers
    = served == 0 ? "" : fmt::format(", {} for servers", gigabytes(served));
  return {"cluster",
          expectation(fmt::format("at most {} of host memory on node {}",
                                  gigabytes(limit), node),
                      fmt::format("{} for offloaded planes{}",
                                  gigabytes(offloaded), of_servers),
                      offloaded >= served
                        ? "offload of fewer roles or more nodes"
                        : "fewer servers on a node")};
}

} // namespace

HostNeeds host_needs(const CheckContext& context, const Replicas& replicas) {
  const auto offloaded
    = offloaded_bytes_by_node(context.workflow, context.plan, replicas,
                              context.shapes, context.dtypes, context.sizes);
  const auto servers
    = server_bytes_by_node(context.workflow, context.plan, context.shapes,
                           context.dtypes, context.sizes);
  HostNeeds needs;
  for (std::uint32_t node = 0; node < context.plan.cluster.nodes; ++node) {
    const auto planes = offloaded.find(node);
    const auto serving = servers.find(node);
    const auto bytes = planes == offloaded.end() ? 0 : planes->second;
    const auto served
      = serving == servers.end() ? 0 : serving->second.on_host();
    needs.offloaded_bytes = std::max(needs.offloaded_bytes, bytes);
    const auto limit = context.host_memory_of(node);
    if (bytes + served > limit)
      needs.mistakes.push_back(too_little(node, limit, bytes, served));
  }
  return needs;
}

} // namespace troupe::plans::internal
