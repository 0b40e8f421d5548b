#include "plans/own_placement.hpp"

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
    return fmt::format("{} has weights, it needs devices, got workers",
                       call.name);
  if (call.own_actor)
    return "";
  if (placement.on_workers)
    return fmt::format("{} is no actor of your own, got workers; try host",
                       call.name);
  if (placement.instances > 0)
    return fmt::format("{} is no actor of your own, got instances: {}; leave "
                       "instances out",
                       call.name, placement.instances);
  return "";
}

} // namespace troupe::plans
