// Rows of a simulated step's picture: devices that run the same tasks share
// one, with their tasks and their memory, in the window of the last step.
#pragma once

#include "plans/simulate/simulator.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::plans::internal {

/// A row, shared by devices that run the same tasks.
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

/// Returns the window from the start of the last step's first task to its end.
TimelineWindow last_step(const Simulation& run);
std::vector<TimelineRow> timeline_rows(const Simulation& run);

/// Returns what the first of a row's devices holds.
const DeviceUse& use_of(const Simulation& run, const TimelineRow& row);
/// Returns the highest peak of all devices.
double highest_peak(const Simulation& run);

} // namespace troupe::plans::internal
