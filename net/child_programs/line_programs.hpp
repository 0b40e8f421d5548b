// Programs that answer lines: child processes that read lines on their standard
// input and answer each with one on their standard output, in any order. A
// process that exits or times out is replaced; its oldest outstanding line is
// given up, the others go to other processes. If it was killed, by somebody or
// because memory ran out, that line is asked once more. The caller defines what
// lines mean.
#pragma once

#include "net/child_programs/child_pool.hpp"
#include "net/child_programs/line_replies.hpp"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

namespace troupe::net {

struct LineProgramOptions {
  std::string name;              ///< "reward.command", for messages
  std::vector<std::string> argv; ///< argv[0]: a path or in PATH
  /// Folder where stderr of process i is appended to NAME_i.log; empty: the
  /// parent's stderr.
  std::filesystem::path log_folder;
  std::uint32_t workers = 1;
  std::uint32_t window = 1; ///< outstanding lines per process
  ReplyDeadline deadline = {};
  /// Line that a process writes once it is ready; "": ready from the start.
  std::string ready_line;
};

class LinePrograms {
public:
  explicit LinePrograms(LineProgramOptions options);
  ~LinePrograms();
  LinePrograms(const LinePrograms&) = delete;
  LinePrograms& operator=(const LinePrograms&) = delete;

  /// Processes all lines until each is answered or lost and no more come.
  /// Throws FailureError: bad_input if the program cannot be executed, or
  /// repeatedly exits (or does not become ready) without ever having answered;
  /// aborted once `stop` is set.
  void run(const LineSource& source, const LineHandler& handler,
           const std::atomic<bool>* stop);

private:
  struct Process;
  class Round;

  std::filesystem::path log_file(const Process& process) const;
  void start(Process& process);
  void close(Process& process);
  std::optional<ChildExit> end_of(Process& process);
  std::string crash_report(const Process& process) const;
  [[noreturn]] void refuse(const std::string& what) const;

  LineProgramOptions options_;
  std::vector<std::unique_ptr<Process>> processes_;
  bool ever_answered_ = false;
  std::uint32_t ends_without_reply_ = 0; ///< consecutive
  std::mutex mutex_;
  std::condition_variable ended_;
  std::uint32_t num_starts_ = 0;
  /// By number of the start, of processes that are in use: how they ended.
  std::map<std::uint32_t, std::optional<ChildExit>> ends_;
  ChildPool pool_; ///< last: its thread reports to the members above
};

} // namespace troupe::net
