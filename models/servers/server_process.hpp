// The program of a server that we start: where it runs, whether it does, and
// how it ended. Its whole process group ends with it and with this process.
#pragma once

#include "net/child_programs/child_pool.hpp"
#include "net/child_programs/group_memory.hpp"

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::models {

struct ServerProgram {
  std::string name;              ///< "server of device 3", for messages
  std::vector<std::string> argv; ///< empty: somebody else started it
  std::vector<std::pair<std::string, std::string>> environment;
  std::filesystem::path log; ///< what it writes, appended
};

/// Returns the begin of an argv that runs a user's command line: words that
/// follow become its last ones.
std::vector<std::string> command_argv(const std::string& command);

class ServerProcess {
public:
  explicit ServerProcess(ServerProgram program);
  ~ServerProcess(); ///< as `end`
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  bool is_ours() const {
    return !program_.argv.empty();
  }
  /// Starts it, after the end of an earlier one. Throws FailureError (io).
  void start();
  /// Notes the shared memory that it has by now, to be removed after its end if
  /// it cannot do so itself.
  void note_memory();
  /// Asks it to end, so that it removes its shared memory, kills what is left
  /// of it, and removes what is left of that.
  void end();
  /// Waits at most `limit` for its end; returns whether it has ended.
  bool wait_for_end(std::chrono::milliseconds limit);
  /// Returns how it ended, with the last line that it wrote; "" if it runs, or
  /// is not ours.
  std::string end_text() const;

private:
  ServerProgram program_;
  pid_t group_ = 0; ///< of the last start
  net::GroupMemory memory_;
  std::uintmax_t log_begin_ = 0; ///< of this start
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<net::ChildExit> ended_;
  net::ChildPool pool_; ///< last: its thread reports to the members above
};

} // namespace troupe::models
