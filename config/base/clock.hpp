// Wall time for people and files, steady time for durations. Limits on waits
// use AwakeClock, which stops with the process.
#pragma once

#include <chrono>

namespace troupe {

/// Returns the seconds of wall time since 1970.
inline double unix_seconds() {
  return std::chrono::duration<double>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

/// Counts the seconds of steady time since it was made.
class Stopwatch {
public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now()
                                         - begin_)
      .count();
  }

private:
  std::chrono::steady_clock::time_point begin_
    = std::chrono::steady_clock::now();
};

} // namespace troupe
