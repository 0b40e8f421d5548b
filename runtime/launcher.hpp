// Starts a run's worker processes on this host: the same binary with the verb
// `worker`, its own log file, its share of the cores. Other launchers (ssh,
// Slurm) will start the same command line elsewhere.
#pragma once

#include "net/child_pool.hpp"
#include "runtime/run_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace troupe::runtime {

struct LaunchSpec {
  std::string program; ///< path of this binary
  std::string address; ///< HOST:PORT of the lobby
  std::filesystem::path token_file;
  std::uint32_t num_workers = 1;
  std::uint32_t threads = 1;                      ///< of each device
  std::string bind = "auto";                      ///< cluster.bind
  std::string ports = "auto";                     ///< cluster.ports
  std::map<std::string, std::string> environment; ///< cluster.env
  RunFolder folder;
};

/// Compute threads of each device so that all devices share the host's cores.
std::uint32_t threads_per_device(std::uint32_t devices_on_host);

/// Path of the running program.
std::string own_program();

class LocalLauncher {
public:
  /// `on_exit` runs on a watching thread with the worker's number.
  explicit LocalLauncher(
    std::function<void(WorkerId, const net::ChildExit&)> on_exit);
  void start(const LaunchSpec& spec);
  /// Sends SIGKILL to every worker that still runs.
  void kill_all();
  /// Waits for orderly ends; kills what is left after `grace`.
  void end_all(std::chrono::milliseconds grace);
  std::optional<std::int64_t> pid_of(WorkerId worker) const;

private:
  mutable std::mutex mutex_;
  std::map<std::int64_t, WorkerId> workers_; ///< by pid
  std::function<void(WorkerId, const net::ChildExit&)> on_exit_;
  net::ChildPool pool_; ///< last: its callback uses the members above
};

} // namespace troupe::runtime
