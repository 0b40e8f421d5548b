// The time since a session began: wall time, as its user or scheduler counts,
// and time awake, for limits on waits of others.
#pragma once

#include "config/base/awake_clock.hpp"

#include <chrono>

namespace troupe::runtime {

class SessionClock {
public:
  using Seconds = std::chrono::duration<double>;

  Seconds elapsed() const {
    return std::chrono::steady_clock::now() - started_;
  }
  AwakeClock::duration awake() const {
    return AwakeClock::now() - started_awake_;
  }

private:
  std::chrono::steady_clock::time_point started_
    = std::chrono::steady_clock::now();
  AwakeClock::time_point started_awake_ = AwakeClock::now();
};

} // namespace troupe::runtime
