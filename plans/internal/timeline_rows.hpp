// Rows of a simulated step's picture: devices that do the same share one, with
// their tasks and their memory, in the window of the last step.
#pragma once

#include "plans/simulator.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::plans::internal {

/// Devices that run the same tasks share a row.
struct TimelineRow {
  std::vector<Rank> devices = {};
  std::vector<TaskTimes> times = {};
};

struct TimelineWindow {
  double begin_s = 0;
  double end_s = 0;
  double width_s() const {
    return end_s - begin_s > 1e-12 ? end_s - begin_s : 1e-12;
  }
};

/// From where the last step's first task starts to its end.
TimelineWindow last_step(const Simulation& run);
std::vector<TimelineRow> timeline_rows(const Simulation& run);

/// What the first of a row's devices holds.
const DeviceUse& use_of(const Simulation& run, const TimelineRow& row);
/// Of all devices.
double highest_peak(const Simulation& run);

} // namespace troupe::plans::internal
