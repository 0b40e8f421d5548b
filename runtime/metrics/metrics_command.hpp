// metrics.command, and the trackers of metrics.wandb and metrics.mlflow: a
// program that gets each line of metrics.jsonl on its standard input, and the
// environment that reward programs get. It never blocks the run: lines that it
// does not read in time are dropped and counted, and its end is logged once.
#pragma once

#include "config/base/defaults.hpp"
#include "net/child_programs/child_pool.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::runtime {

struct MetricsProgram {
  std::string name; ///< "metrics.wandb", for messages
  std::vector<std::string> argv;
  /// How long it may take after its last line.
  std::chrono::milliseconds grace = defaults::metrics_grace;
};

class MetricsCommand {
public:
  /// Starts a program. Throws FailureError (io) if that fails.
  explicit MetricsCommand(MetricsProgram program);
  /// Starts `command` with the shell. Throws FailureError (io) if that fails.
  explicit MetricsCommand(const std::string& command);
  /// Closes its input and waits for its end for `grace`; then kills it, and
  /// says so.
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

  std::string name_;
  std::chrono::milliseconds grace_;
  int input_ = -1; ///< -1: it does not read any more
  std::uint64_t dropped_ = 0;
  net::ChildPool pool_;
};

} // namespace troupe::runtime
