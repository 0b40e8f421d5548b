// One child process that reads lines on its standard input and answers each
// with one line on its standard output. It is started at the first line, and
// again after it ended or was too late. One thread at a time.
#pragma once

#include "net/child_pool.hpp"

#include <atomic>

namespace troupe::net {

struct LineProcessOptions {
  std::string command; ///< a program and its arguments, for the shell
  std::chrono::milliseconds deadline{10'000}; ///< longest wait for an answer
};

class LineProcess {
public:
  explicit LineProcess(LineProcessOptions options);
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  /// The answer without its line break. Throws FailureError: bad_input for a
  /// line break in `line` and for a program that ended; deadline for one that
  /// is late, which is killed.
  std::string ask(const std::string& line);

private:
  struct Pipe {
    int read_end = -1;
    int write_end = -1;
  };
  void start();
  void stop();
  bool ended() const {
    return ended_pid_ == pid_;
  }
  bool wait_for(int descriptor, short events,
                std::chrono::steady_clock::time_point until);
  void write_line(const std::string& line);
  std::string read_line();
  [[noreturn]] void fail(bool late, const std::string& what);

  LineProcessOptions options_;
  Pipe to_, from_; ///< both ends of both are ours, too
  int wake_ = -1;  ///< event: a child ended
  pid_t pid_ = 0;  ///< 0: not running
  std::string unread_;
  std::atomic<pid_t> ended_pid_{-1};
  std::unique_ptr<ChildPool> children_; ///< its thread looks at the above
};

} // namespace troupe::net
