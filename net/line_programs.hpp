// Programs that answer lines: child processes that read lines on their standard
// input and answer each with one on their standard output, in any order. One
// that ends or falls silent is replaced; the oldest line it owed is given up,
// the others go to somebody else. What lines mean is the caller's.
#pragma once

#include "net/child_pool.hpp"
#include "net/line_answers.hpp"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

namespace troupe::net {

struct LineProgramOptions {
  std::string name;              ///< "reward.command", for messages
  std::vector<std::string> argv; ///< argv[0]: path or in PATH
  /// stderr of process i is appended to NAME_i.log there; empty: the parent's.
  std::filesystem::path log_folder;
  std::uint32_t workers = 1;
  std::uint32_t window = 1; ///< lines that a process may owe
  AnswerDeadline deadline = {};
  /// What a process says once it is ready for lines; "": ready from the start.
  std::string ready_line;
};

class LinePrograms {
public:
  explicit LinePrograms(LineProgramOptions options);
  ~LinePrograms();
  LinePrograms(const LinePrograms&) = delete;
  LinePrograms& operator=(const LinePrograms&) = delete;

  /// Has each line answered or lost, until there are no more. Throws
  /// FailureError: bad_input when the program cannot be executed, or ends (or
  /// does not get ready) again and again without ever having answered; aborted
  /// once `stop` is raised.
  void run(const LineSource& source, const LineHandler& handler,
           const std::atomic<bool>* stop);

private:
  struct Process;
  class Round;

  std::filesystem::path log_file(const Process& process) const;
  void start(Process& process);
  void close(Process& process);
  std::string end_of(Process& process);
  std::string last_words(const Process& process) const;
  [[noreturn]] void refuse(const std::string& what) const;

  LineProgramOptions options_;
  std::vector<std::unique_ptr<Process>> processes_;
  bool ever_answered_ = false;
  std::uint32_t ends_without_answer_ = 0; ///< in a row
  std::mutex mutex_;
  std::condition_variable ended_;
  std::map<pid_t, ChildExit> exits_; ///< of children not yet asked for
  ChildPool pool_;                   ///< last: its thread reports to the above
};

} // namespace troupe::net
