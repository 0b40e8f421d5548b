// Why devices are idle, as far as the master knows. Between two tasks of a
// device: the last thing that the later one waited for (plans::WaitReason).
// Inside a task: until its rows are there (bytes), then for slower devices of
// its mesh (device). Pure: times are arguments.
#pragma once

#include "actors/master/step_report.hpp"
#include "plans/schedule/schedule.hpp"

#include <map>

namespace troupe::actors {

class IdleTimes {
public:
  IdleTimes() = default;
  /// Takes every device to be free from `start` on.
  explicit IdleTimes(Clock::time_point start) : start_(start) {}

  /// Begins a task on `devices`, whose last reason to wait was `why`.
  void begin(const std::vector<Rank>& devices, plans::WaitReason why,
             Clock::time_point now, IdleSeconds& idle);
  /// Ends a task whose rows were being fetched for `fetching` of its time.
  void end(const TaskReport& task, Seconds fetching, IdleSeconds& idle);

private:
  Clock::time_point start_;
  std::map<Rank, Clock::time_point> free_since_;
};

} // namespace troupe::actors
