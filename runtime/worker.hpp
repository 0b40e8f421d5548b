// The verb `worker`: one worker process from joining to its end.
#pragma once

#include "config/error.hpp"
#include "runtime/listen_ports.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::runtime {

struct WorkerOptions {
  std::string host; ///< of the lobby
  std::uint16_t port = 0;
  std::filesystem::path token_file;
  std::optional<std::uint32_t> number; ///< that the launcher gave
  std::uint32_t threads = 1;           ///< compute threads of each device
  ListenPorts listen = {};             ///< of the data plane
};

/// Joins, works until the master says stop, and returns the exit code. Errors
/// go to stderr (the launcher's log file).
ExitCode run_worker(const WorkerOptions& options);

} // namespace troupe::runtime
