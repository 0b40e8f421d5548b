// A steady clock that stands still while the whole process is stopped (SIGSTOP,
// a job that Slurm suspends, a paused container): a run that is woken finds its
// deadlines where they were. A thread looks at the time four times a second.
// If much more time than that lies between two of its looks, the whole process
// stood still, and the time is left out.
#pragma once

#include <chrono>
#include <mutex>

namespace troupe {

/// Subtracts the time that the process was stopped; pure, times are arguments.
class AwakeTime {
public:
  using Steady = std::chrono::steady_clock;

  explicit AwakeTime(Steady::time_point now) : last_look_(now) {}
  /// The process runs at this moment.
  void look(Steady::time_point now);
  /// Time awake since some moment.
  Steady::duration at(Steady::time_point now) const;

private:
  mutable std::mutex mutex_;
  Steady::time_point last_look_;
  Steady::duration asleep_{0};
};

struct AwakeClock {
  using duration = std::chrono::steady_clock::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<AwakeClock>;
  static constexpr bool is_steady = true;
  static time_point now();
};

} // namespace troupe
