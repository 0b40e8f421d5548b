#include "plans/shared_cores.hpp"

#include "plans/hardware.hpp"

namespace troupe::plans {

SharedCores::SharedCores(const Hardware& hardware, const Cluster& cluster)
  : devices_per_node_(cluster.devices_per_node) {
  if (hardware.crowded_share <= 0 || hardware.crowded_share >= 1)
    return;
  share_ = hardware.crowded_share;
  cores_ = share_ * hardware.devices_per_node;
}

DevicesOfNodes SharedCores::by_node(std::vector<Rank> devices,
                                    double use) const {
  std::ranges::sort(devices);
  const auto again = std::ranges::unique(devices);
  devices.erase(again.begin(), again.end());
  DevicesOfNodes nodes;
  for (const auto device : devices) {
    const auto node = device.value / devices_per_node_;
    if (nodes.empty() || nodes.back().first != node)
      nodes.emplace_back(node, 0);
    nodes.back().second += use;
  }
  return nodes;
}

double SharedCores::stretch(const DevicesOfNodes& busy) const {
  double most = 1;
  for (const auto& [node, devices] : busy)
    most = std::max(most, stretch(devices));
  return most;
}

double SharedCores::alone(const std::vector<Rank>& devices, double use) const {
  return any() ? share_ * stretch(by_node(devices, use)) : 1;
}

double SharedCores::at_work(const std::vector<Rank>& devices,
                            double use) const {
  const auto count = static_cast<double>(devices.size());
  return any() ? use * count / stretch(by_node(devices, use)) : count;
}

} // namespace troupe::plans
