// metrics.command: a program of the user that gets each line of metrics.jsonl
// on its standard input, and the environment that reward programs get. It never
// blocks the run: lines that it does not read in time are dropped and counted,
// and its end is logged once.
#pragma once

#include "net/child_programs/child_pool.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::runtime {

class MetricsCommand {
public:
  /// Starts `command` with the shell. Throws FailureError (io) if that fails.
  explicit MetricsCommand(const std::string& command);
  /// Closes its input and waits for its end for a short time; then kills it.
  ~MetricsCommand();
  MetricsCommand(const MetricsCommand&) = delete;
  MetricsCommand& operator=(const MetricsCommand&) = delete;

  /// `line` without a line end.
  void write(std::string_view line);
  std::uint64_t dropped() const {
    return dropped_;
  }

private:
  void give_up(int error);

  int input_ = -1; ///< -1: it does not read any more
  std::uint64_t dropped_ = 0;
  net::ChildPool pool_;
};

} // namespace troupe::runtime
