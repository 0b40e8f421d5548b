#include "plans/simulate/memory_curve.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <map>

namespace troupe::plans {

namespace {

class CurveMaker {
public:
  explicit CurveMaker(const DevicePeak& device) : device_(device) {
    put(0, 0);
  }

  /// Adds tasks in the order of their starts. Only calls and checks of servers
  /// allocate working memory: a task that loads planes has just these, and one
  /// that takes no time is skipped.
  void add(const TaskTemplate& task, const TaskTimes& times) {
    if (times.end_s <= times.start_s)
      return;
    const auto& name = task.call.empty() ? task.name : task.call;
    const auto found
      = std::ranges::find(device_.tasks, name, &TaskMemory::task);
    const auto memory = found == device_.tasks.end() ? TaskMemory{} : *found;
    put(end_s_, std::min(planes_, memory.plane_bytes));
    put(times.start_s,
        task.kind == TaskKind::call || task.kind == TaskKind::update
          ? memory.bytes
          : memory.plane_bytes);
    planes_ = memory.plane_bytes;
    end_s_ = times.end_s;
  }

  std::vector<MemoryPoint> take() {
    put(end_s_, 0);
    return std::move(curve_);
  }

private:
  void put(double at_s, std::uint64_t bytes_beside) {
    const auto bytes = device_.resident_bytes + bytes_beside;
    if (!curve_.empty() && curve_.back().at_s >= at_s)
      curve_.pop_back();
    if (curve_.empty() || curve_.back().bytes != bytes)
      curve_.push_back({at_s, bytes});
  }

  const DevicePeak& device_;
  std::vector<MemoryPoint> curve_;
  std::uint64_t planes_ = 0; ///< of the previous task
  double end_s_ = 0;         ///< of the previous task
};

} // namespace

void add_memory_curves(Simulation& run,
                       const std::vector<DevicePeak>& devices) {
  TROUPE_CHECK(run.devices.size() == devices.size(),
               "a simulation of other devices");
  std::map<Rank, CurveMaker> makers;
  for (const auto& device : devices)
    makers.try_emplace(device.device, device);
  for (const auto& times : run.times) {
    const auto& task = run.graph.tasks[times.task.task];
    for (const auto rank : task.devices)
      makers.at(rank).add(task, times);
  }
  for (auto& device : run.devices)
    device.memory = makers.at(device.device).take();
}

std::uint64_t most_bytes(const std::vector<MemoryPoint>& curve, double begin_s,
                         double end_s) {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < curve.size() && curve[i].at_s < end_s; ++i)
    if (i + 1 == curve.size() || curve[i + 1].at_s > begin_s)
      most = std::max(most, curve[i].bytes);
  return most;
}

} // namespace troupe::plans
