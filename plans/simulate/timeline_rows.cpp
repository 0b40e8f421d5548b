#include "plans/simulate/timeline_rows.hpp"

#include <algorithm>
#include <map>

namespace troupe::plans::internal {

TimelineWindow last_step(const Simulation& run) {
  TimelineWindow window{.begin_s = 1e300};
  for (const auto& times : run.times)
    if (times.task.step.value + 1 == run.num_steps) {
      window.begin_s = std::min(window.begin_s, times.start_s);
      window.end_s = std::max(window.end_s, times.end_s);
    }
  if (window.begin_s > window.end_s)
    window.begin_s = window.end_s;
  return window;
}

std::vector<TimelineRow> timeline_rows(const Simulation& run) {
  std::map<Rank, std::vector<TaskTimes>> of_device;
  for (const auto& times : run.times)
    for (const auto rank : run.graph.tasks[times.task.task].devices)
      of_device[rank].push_back(times);
  std::vector<TimelineRow> rows;
  for (auto& [rank, times] : of_device) {
    const auto same = [&](const TimelineRow& row) {
      return std::ranges::equal(row.times, times, {}, &TaskTimes::task,
                                &TaskTimes::task);
    };
    const auto found = std::ranges::find_if(rows, same);
    if (found == rows.end())
      rows.push_back({{rank}, std::move(times)});
    else
      found->devices.push_back(rank);
  }
  return rows;
}

const DeviceUse& use_of(const Simulation& run, const TimelineRow& row) {
  return *std::ranges::find(run.devices, row.devices.front(),
                            &DeviceUse::device);
}

double highest_peak(const Simulation& run) {
  std::uint64_t most = 1;
  for (const auto& device : run.devices)
    most = std::max(most, device.peak_bytes);
  return double(most);
}

} // namespace troupe::plans::internal
