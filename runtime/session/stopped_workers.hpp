// Workers that were stopped by a signal before they joined: heartbeats know
// only those that have.
#pragma once

#include "config/base/awake_clock.hpp"
#include "config/base/ids.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace troupe::runtime {

class StoppedWorkers {
public:
  /// Takes those that are stopped now; returns those that have been for longer
  /// than `limit`.
  std::vector<WorkerId> look(const std::vector<WorkerId>& stopped,
                             AwakeClock::time_point now,
                             AwakeClock::duration limit) {
    std::erase_if(since_, [&](const auto& entry) {
      return std::ranges::find(stopped, entry.first) == stopped.end();
    });
    std::vector<WorkerId> late;
    for (const auto worker : stopped)
      if (now - since_.try_emplace(worker, now).first->second > limit)
        late.push_back(worker);
    return late;
  }

private:
  std::map<WorkerId, AwakeClock::time_point> since_;
};

} // namespace troupe::runtime
