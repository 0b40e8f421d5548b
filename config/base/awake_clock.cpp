#include "config/base/awake_clock.hpp"

#include "config/base/defaults.hpp"

#include <algorithm>
#include <condition_variable>
#include <thread>

namespace troupe {

namespace {

using namespace std::chrono_literals;

constexpr auto awake_look_period = 250ms;
/// Largest difference between two samples that is counted: a loaded host may be
/// late.
constexpr std::chrono::steady_clock::duration awake_most
  = defaults::suspect_after;

/// Samples the time for the whole lifetime of the process.
class AwakeWatch {
public:
  AwakeWatch() {
    std::thread([this] {
      std::mutex mutex;
      std::condition_variable never;
      std::unique_lock lock{mutex};
      for (;;) {
        never.wait_for(lock, awake_look_period);
        time.look(AwakeTime::Steady::now());
      }
    }).detach();
  }
  AwakeTime time{AwakeTime::Steady::now()};
};

} // namespace

void AwakeTime::look(Steady::time_point now) {
  const std::lock_guard lock{mutex_};
  asleep_ += std::max(Steady::duration{0}, now - last_look_ - awake_most);
  last_look_ = now;
}

AwakeTime::Steady::duration AwakeTime::at(Steady::time_point now) const {
  const std::lock_guard lock{mutex_};
  return std::min(now, last_look_ + awake_most).time_since_epoch() - asleep_;
}

AwakeClock::time_point AwakeClock::now() {
  static AwakeWatch& watch = *new AwakeWatch; // its thread outlives statics
  return time_point(watch.time.at(AwakeTime::Steady::now()));
}

} // namespace troupe
