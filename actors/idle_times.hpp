// Why devices are idle, as far as the master knows. Between two tasks of a
// device: what the later one waited for last (plans::WaitReason). Inside a
// task: until its rows are there (bytes), then for slower devices of its mesh
// (device). Pure: times are arguments.
#pragma once

#include "actors/step_report.hpp"
#include "plans/schedule.hpp"

#include <map>

namespace troupe::actors {

class IdleTimes {
public:
  IdleTimes() = default;
  /// Every device is free from `start` on.
  explicit IdleTimes(Clock::time_point start) : start_(start) {}

  /// A task begins on `devices` that waited for `why` last.
  void begin(const std::vector<Rank>& devices, plans::WaitReason why,
             Clock::time_point now, IdleSeconds& idle);
  /// It has ended; for `fetching` of its time its rows were on their way.
  void end(const TaskReport& task, Seconds fetching, IdleSeconds& idle);

private:
  Clock::time_point start_;
  std::map<Rank, Clock::time_point> free_since_;
};

} // namespace troupe::actors
