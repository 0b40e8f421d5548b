// The end of a process that cannot end: whoever waits in a destructor for
// something that never comes would keep the run's lock and its scheduler's
// nodes for ever.
#pragma once

#include "config/error.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace troupe::runtime {

class LastResort {
public:
  /// `who` did not end, for the message.
  explicit LastResort(std::string who) : who_(std::move(who)) {}
  ~LastResort(); ///< all has ended as it should
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

  /// Unless this object is destroyed within `limit`, the process exits with
  /// `code` and a message. Time in which the process is stopped doesn't count.
  void arm(std::chrono::milliseconds limit, ExitCode code);

private:
  std::string who_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false; ///< guarded
  std::thread watcher_;
};

} // namespace troupe::runtime
