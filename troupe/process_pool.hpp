// Child processes of a user-defined actor: each reads lines on its standard
// input and answers each line with one non-empty line. A process that exits or
// times out is replaced; its standard error goes to the worker's log.
#pragma once

#include "troupe/waits.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace troupe {

struct ProcessOptions {
  int processes = 1;
  std::chrono::milliseconds deadline{10'000}; ///< longest wait for an answer
};

namespace detail {

using line_atom = caf::atom_constant<caf::atom("line")>;
using LineActor = caf::typed_actor<
  caf::replies_to<line_atom, std::string>::with<std::string>>;

/// Spawns one process with a dedicated thread; it ends with the last handle.
LineActor spawn_line_actor(caf::actor_system& system,
                           const std::string& command,
                           std::chrono::milliseconds deadline);

} // namespace detail

class ProcessPool {
public:
  ProcessPool() = default;
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;
  ~ProcessPool() {
    stop();
  }

  /// Starts the processes; `command` is a program with its arguments, run by
  /// the shell.
  template <class Self>
  void start(Self self, const std::string& command, ProcessOptions options) {
    stop();
    for (int i = 0; i < options.processes; ++i)
      workers_.push_back(detail::spawn_line_actor(self->home_system(), command,
                                                  options.deadline));
    ask_ = [self](const detail::LineActor& worker, std::string line) {
      return troupe::ask<std::string>(self, std::chrono::seconds(0), worker,
                                      detail::line_atom::value,
                                      std::move(line));
    };
  }
  /// Returns the program's answer to a line; line breaks in `line` become
  /// spaces. Fails if the program exits or times out.
  Future<std::string> ask(std::string line) {
    if (workers_.empty())
      throw WaitError("a ProcessPool that was not started, or with 0 "
                      "processes, is asked");
    std::ranges::replace(line, '\n', ' ');
    return ask_(workers_.at(next_++ % workers_.size()), std::move(line));
  }

private:
  /// Ends all workers: an actor with a thread needs an exit message, others end
  /// with their last handle.
  void stop() {
    for (const auto& worker : workers_)
      caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
    workers_.clear();
  }

  std::vector<detail::LineActor> workers_;
  std::size_t next_ = 0;
  std::function<Future<std::string>(const detail::LineActor&, std::string)>
    ask_;
};

} // namespace troupe
