// The peak memory of each device over a run, and the task that reached it, as
// its worker found it (actors/worker/shard_memory.hpp), beside what the plan
// foresaw.
#pragma once

#include "actors/master/step_report.hpp"
#include "plans/check/plan_check.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::runtime {

struct DevicePeak {
  std::uint64_t peak_bytes = 0;
  std::string at_task; ///< as in the plan check: a chunk counts as its call
};
/// Returns "peak memory 11.4 MiB in actor_train, 12.1 MiB planned"; without the
/// plan's where `planned_bytes` is 0.
std::string peak_text(const DevicePeak& peak, std::uint64_t planned_bytes = 0);

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

/// Returns, for a run that ran out of memory, "the plan has at most 61.2 GB on
/// device 3, in actor_train; the most so far was 58.0 GB on device 3, in
/// ref_inf".
std::string planned_and_found(const std::vector<plans::DevicePeak>& planned,
                              const std::map<Rank, DevicePeak>& found);

/// Returns the peak of the fullest device in any of the step's tasks.
std::uint64_t peak_bytes_of(const actors::StepReport& report);

} // namespace troupe::runtime
