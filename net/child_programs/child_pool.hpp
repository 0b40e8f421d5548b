// Starts every other program: workers, reward programs, metrics.command and the
// browser. Children of a pool are watched, stopped and end with the parent.
// Each leads its own process group (Ctrl-C reaches only the parent) and dies
// when the parent does (PR_SET_PDEATHSIG). No program inherits descriptors. No
// wait for a killed child is longer than kKilledEndsWithin: one that hangs in a
// driver or a file system may never end. Thread-safe.
#pragma once

#include "net/child_programs/child_start.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::net {

struct ChildExit {
  std::string name;
  std::uint32_t number = 0; ///< number of its ChildSpec
  pid_t pid = 0;
  int code = 0;   ///< exit code, if it exited
  int signal = 0; ///< signal that ended it, or 0
};
/// Returns "exit code 3" or "killed by signal 9 (Killed)".
std::string to_string(const ChildExit& exit);

class ChildPool {
public:
  /// Ignores SIGPIPE in this process, so that writing to a child that has ended
  /// is an error, and starts the watching thread, on which `on_exit` runs once
  /// per child, possibly before `start` has returned. It must not destroy the
  /// pool, nor wait for a thread that is in `start`: the watching thread is the
  /// one that forks.
  explicit ChildPool(std::function<void(const ChildExit&)> on_exit = {});
  /// Kills the remaining children (SIGKILL to each group) and waits for them. A
  /// warning names those that do not end; their ends are not reported.
  ~ChildPool();
  ChildPool(const ChildPool&) = delete;
  ChildPool& operator=(const ChildPool&) = delete;

  /// Starts a program. Throws FailureError (io) with the reason if it cannot be
  /// executed, or is not within kProgramStartsWithin.
  pid_t start(ChildSpec spec);
  /// Sends a signal to the child's group; returns false if the child has
  /// already ended.
  bool signal(pid_t pid, int signal_number);
  void signal_all(int signal_number);
  std::vector<pid_t> running() const;
  /// Returns the numbers of the children that a signal has stopped.
  std::vector<std::uint32_t> stopped() const;
  /// Waits for at most `limit`; returns true if no child is left and `on_exit`
  /// has returned for all. Not for use in `on_exit`.
  bool wait_all(std::chrono::milliseconds limit);
  /// Sends SIGTERM, then SIGKILL after `grace`; returns when no child is left,
  /// or after a warning that names what does not end.
  void stop_all(std::chrono::milliseconds grace);

private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

} // namespace troupe::net
