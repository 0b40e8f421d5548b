// A steady clock that stops while the whole process is stopped (SIGSTOP, a job
// that Slurm suspends, a paused container), so that a resumed run finds its
// deadlines unchanged. A thread samples the time four times a second. If much
// more time passes between two samples, the whole process was stopped, and that
// time is left out.
#pragma once

#include <chrono>
#include <mutex>

namespace troupe {

/// Subtracts the time that the process was stopped; pure, times are arguments.
class AwakeTime {
public:
  using Steady = std::chrono::steady_clock;

  explicit AwakeTime(Steady::time_point now) : last_look_(now) {}
  /// Records that the process is running at `now`.
  void look(Steady::time_point now);
  /// Returns the time awake since a fixed moment.
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
