#include "plans/cost/mesh_span.hpp"

#include <cstddef>

namespace troupe::plans {

namespace {

/// Returns whether one of the runs of `count` devices spans nodes.
bool cost_run_spans(const std::vector<Rank>& devices, std::size_t count,
                    const Cluster& cluster) {
  for (std::size_t i = 0; count > 1 && i < devices.size(); i += count)
    if (cluster.node_of(devices[i]) != cluster.node_of(devices[i + count - 1]))
      return true;
  return false;
}

} // namespace

MeshSpan span_of(const Placement& placement, const Cluster& cluster) {
  MeshSpan span;
  const auto& devices = placement.devices;
  const auto& strategy = placement.strategy;
  if (devices.empty())
    return span;
  const auto tensor = std::size_t{strategy.tp};
  span.tensor = cost_run_spans(devices, tensor, cluster);
  span.context = cost_run_spans(devices, tensor * strategy.cp, cluster);
  span.data = cost_run_spans(devices, tensor * strategy.dp, cluster);
  span.pipeline = cost_run_spans(devices, devices.size(), cluster);
  return span;
}

} // namespace troupe::plans
