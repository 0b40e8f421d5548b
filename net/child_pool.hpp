// Child processes of the launcher and of reward programs: start, watch, stop,
// all of them with the parent. Each child leads its own process group (Ctrl-C
// reaches the parent only) and dies when the parent does (PR_SET_PDEATHSIG).
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::net {

/// A limit as setrlimit takes it.
struct ChildLimit {
  int resource = 0; ///< RLIMIT_..
  std::uint64_t most = 0;
};

struct ChildSpec {
  std::string name;              ///< "worker 1", for messages
  std::uint32_t number = 0;      ///< the starter's own, given back at the end
  std::vector<std::string> argv; ///< argv[0] is the program: path or in PATH
  std::vector<std::pair<std::string, std::string>> environment; ///< added
  std::filesystem::path working_folder; ///< empty: the parent's
  std::filesystem::path output_file;    ///< stdout and stderr, appended; empty:
                                        ///< the parent's
  int input = -1;  ///< descriptor that becomes its stdin; -1: empty
  int output = -1; ///< its stdout, in place of output_file's; -1: none
  std::vector<ChildLimit> limits;
};

struct ChildExit {
  std::string name;
  std::uint32_t number = 0; ///< of its ChildSpec
  pid_t pid = 0;
  int code = 0;   ///< exit code, if it exited
  int signal = 0; ///< the signal that ended it, or 0
};
/// "exit code 3" or "killed by signal 9 (Killed)".
std::string to_string(const ChildExit& exit);

class ChildPool {
public:
  /// `on_exit` runs on the watching thread, once a child, and may run before
  /// `start` has returned. It must not destroy the pool, nor wait for a thread
  /// that is in `start`: the watching thread is the one that forks.
  explicit ChildPool(std::function<void(const ChildExit&)> on_exit = {});
  /// Kills what still runs (SIGKILL to each group) and waits for it.
  ~ChildPool();
  ChildPool(const ChildPool&) = delete;
  ChildPool& operator=(const ChildPool&) = delete;

  /// Starts a program. Throws FailureError (io) when it cannot be executed,
  /// with the reason.
  pid_t start(ChildSpec spec);
  /// Sends a signal to the child's group; false when it has already gone.
  bool signal(pid_t pid, int signal_number);
  void signal_all(int signal_number);
  std::vector<pid_t> running() const;
  /// True when no child is left, after at most `limit`.
  bool wait_all(std::chrono::milliseconds limit);
  /// SIGTERM, then SIGKILL after `grace`; returns when none is left.
  void stop_all(std::chrono::milliseconds grace);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::net
