// The command `worker`: one worker process from joining to its end.
#pragma once

#include "config/base/error.hpp"
#include "config/base/listen_ports.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::runtime {

struct WorkerOptions {
  std::string host; ///< host of the join actor
  std::uint16_t port = 0;
  std::filesystem::path token_file;
  std::optional<std::uint32_t> number; ///< assigned by the launcher
  std::uint32_t threads = 1;           ///< compute threads per device
  ListenPorts listen = {};             ///< for the data plane
};

/// Joins, works until the master sends stop, and returns the exit code. Errors
/// go to stderr (the launcher's log file).
ExitCode run_worker(const WorkerOptions& options);

} // namespace troupe::runtime
