#include "actors/master/idle_times.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

Seconds& part_of(IdleSeconds& idle, plans::WaitReason why) {
  switch (why) {
  case plans::WaitReason::dependency:
    return idle.dependency;
  case plans::WaitReason::device:
    return idle.device;
  case plans::WaitReason::version:
    return idle.version;
  }
  return idle.dependency;
}

} // namespace

void IdleTimes::begin(const std::vector<Rank>& devices, plans::WaitReason why,
                      Clock::time_point now, IdleSeconds& idle) {
  for (const Rank rank : devices) {
    const auto found = free_since_.find(rank);
    const auto since = found == free_since_.end() ? start_ : found->second;
    part_of(idle, why) += now - since;
    free_since_[rank] = now;
  }
}

void IdleTimes::end(const TaskReport& task, Seconds fetching,
                    IdleSeconds& idle) {
  const Seconds whole = task.ended - task.started;
  for (std::size_t i = 0; i < task.devices.size(); ++i) {
    free_since_[task.devices[i]] = task.ended;
    const Seconds busy = task.busy.empty()
                           ? Seconds{0}
                           : task.busy[std::min(i, task.busy.size() - 1)];
    const Seconds left = std::max(whole - busy, Seconds{0});
    const Seconds bytes = std::min(left, fetching);
    idle.bytes += bytes;
    idle.device += left - bytes;
  }
}

} // namespace troupe::actors
