// The losses of each device of a worker: this program's, with one in Python
// bound to a process of that device, whose log and deadlines are the run's.
#pragma once

#include "config/base/ids.hpp"
#include "models/losses/loss.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace troupe::actors {

struct WorkerContext;

class DeviceLosses {
public:
  /// Returns the losses for training `role` on a device, valid as long as this
  /// is; null: those of the program, as none is in Python. `stop` ends a
  /// computation. Thread-safe.
  const models::Losses* find(const WorkerContext& worker, Rank device,
                             const std::string& role,
                             const std::atomic<bool>& stop);

private:
  std::mutex mutex_;
  std::map<std::pair<Rank, std::string>, std::unique_ptr<models::Losses>> made_;
};

} // namespace troupe::actors
