#include "plans/cost/shared_cores.hpp"

#include "plans/cost/hardware.hpp"

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

double SharedCores::alone(const std::vector<Rank>& devices,
                          const StageTurns& turns) const {
  if (!any())
    return 1;
  const auto most = std::min(turns.stages, turns.micro_batches);
  const auto stretched = [&](double stages) {
    return stretch(by_node(devices, stages / turns.stages));
  };
  const auto num_turns = turns.micro_batches + turns.stages - 1;
  double sum = (num_turns - 2 * (most - 1)) * stretched(most);
  for (double stages = 1; stages < most; ++stages)
    sum += 2 * stretched(stages);
  return share_ * sum / num_turns;
}

double SharedCores::at_work(const std::vector<Rank>& devices,
                            double use) const {
  const auto count = static_cast<double>(devices.size());
  return any() ? use * count / stretch(by_node(devices, use)) : count;
}

} // namespace troupe::plans
