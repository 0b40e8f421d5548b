#include "plans/simulate/running_tasks.hpp"

#include <algorithm>
#include <limits>

namespace troupe::plans::internal {

CoreSharingTasks::CoreSharingTasks(const StepGraph& graph,
                                   const TaskSeconds& seconds)
  : cores_(seconds.cores) {
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    auto devices = cores_.by_node(graph.tasks[i].devices,
                                  seconds.use.empty() ? 1 : seconds.use[i]);
    const auto alone = cores_.stretch(devices);
    meshes_.push_back({std::move(devices), alone});
  }
}

void CoreSharingTasks::start(std::size_t number, std::uint32_t task,
                             double seconds) {
  running_.push_back({number, task, seconds});
  for (const auto& [node, devices] : meshes_[task].devices)
    busy_[node] += devices;
}

double CoreSharingTasks::pace(std::uint32_t task) const {
  const auto& [devices, alone] = meshes_[task];
  double most = alone;
  for (const auto& [node, count] : devices)
    most = std::max(most, cores_.stretch(busy_.at(node)));
  return most / alone;
}

TaskEnd CoreSharingTasks::next() {
  auto passes_s = std::numeric_limits<double>::infinity();
  std::size_t first = 0;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const auto needs_s = running_[i].left_s * pace(running_[i].task);
    if (needs_s >= passes_s)
      continue;
    passes_s = needs_s;
    first = i;
  }
  for (auto& task : running_)
    task.left_s = std::max(0.0, task.left_s - passes_s / pace(task.task));
  now_s_ += passes_s;
  const auto ended = running_[first];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(first));
  for (const auto& [node, devices] : meshes_[ended.task].devices)
    busy_[node] -= devices;
  return {now_s_, ended.number};
}

} // namespace troupe::plans::internal
