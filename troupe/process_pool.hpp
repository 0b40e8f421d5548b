// Child processes of an own actor: each reads lines on its standard input and
// answers each with one line that is not empty. One that ends or falls silent
// is replaced; what it wrote to its standard error is in the worker's log.
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

/// One process with a thread of its own; it ends with the last handle.
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

  /// `command` is a program and its arguments, run by the shell.
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
  /// The program's answer to a line; line breaks in it become spaces. Fails
  /// with the program's end or its silence.
  Future<std::string> ask(std::string line) {
    if (workers_.empty())
      throw WaitError("a ProcessPool that was not started, or with 0 "
                      "processes, is asked");
    std::ranges::replace(line, '\n', ' ');
    return ask_(workers_.at(next_++ % workers_.size()), std::move(line));
  }

private:
  /// Actors with threads are told to end; others end with their last handle.
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
