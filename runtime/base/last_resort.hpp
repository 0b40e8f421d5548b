// Ends a process that cannot end: a destructor that waits for something that
// never happens would hold the run's lock and its scheduler's nodes for ever.
#pragma once

#include "config/base/error.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace troupe::runtime {

class LastResort {
public:
  /// `who` did not end, in the message.
  explicit LastResort(std::string who) : who_(std::move(who)) {}
  ~LastResort(); ///< all has ended in order
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

  /// Exits the process with `code` and a message unless this object is
  /// destroyed within `limit`. Time in which the process is stopped does not
  /// count.
  void arm(std::chrono::milliseconds limit, ExitCode code);

private:
  std::string who_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false; ///< guarded by the mutex
  std::thread watcher_;
};

} // namespace troupe::runtime
