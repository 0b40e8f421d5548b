// The peak memory of each device over a run, and the task that reached it, as
// counted on the device's thread (net/base/memory_count.hpp).
#pragma once

#include "actors/master/step_report.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace troupe::runtime {

struct DevicePeak {
  std::uint64_t peak_bytes = 0;
  std::string at_task; ///< as in the plan check: a chunk counts as its call
};
/// Returns "peak memory 11.4 MiB in actor_train".
std::string peak_text(const DevicePeak& peak);

class DevicePeaks {
public:
  void add(const actors::StepReport& report);
  /// Returns the peaks of the devices that ran tasks.
  const std::map<Rank, DevicePeak>& all() const {
    return peaks_;
  }

private:
  std::map<Rank, DevicePeak> peaks_;
};

/// Returns the peak of the fullest device in any of the step's tasks.
std::uint64_t peak_bytes_of(const actors::StepReport& report);

} // namespace troupe::runtime
