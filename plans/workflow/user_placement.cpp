#include "plans/workflow/user_placement.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

bool counts_by_host(const Placement& placement) {
  return placement.instances > 0 && !placement.on_workers
         && placement.devices.empty();
}

} // namespace

std::uint32_t instances_on(const Cluster& cluster, const Placement& placement,
                           WorkerId worker) {
  const auto count = static_cast<std::uint32_t>(placement.instances);
  if (!counts_by_host(placement))
    return std::max(count, 1U);
  const auto workers = cluster.workers_per_node;
  const auto on_host = worker.value % workers;
  return count / workers + (on_host < count % workers ? 1 : 0);
}

WorkerId instances_for(const Cluster& cluster, const Placement& placement,
                       WorkerId holder) {
  if (!counts_by_host(placement))
    return holder;
  const auto workers = cluster.workers_per_node;
  const auto on_host = holder.value % workers;
  const auto bearing
    = std::min(workers, static_cast<std::uint32_t>(placement.instances));
  return WorkerId{holder.value - on_host + on_host % bearing};
}

std::string why_no_instances(const Call& call, const Placement& placement) {
  if (placement.on_workers && call.kind != CallKind::function)
    return expectation(fmt::format("devices, for {} has weights", call.name),
                       "workers");
  if (call.by.user_actor)
    return "";
  const auto no_actor
    = fmt::format(", for {} is no actor of your own", call.name);
  if (placement.on_workers)
    return expectation("host" + no_actor, "workers", "host");
  if (placement.instances > 0)
    return expectation("no instances" + no_actor,
                       std::to_string(placement.instances), "leaving them out");
  return "";
}

} // namespace troupe::plans
