// Starts a run's worker processes: the same binary with the verb `worker`, its
// own log file, its share of the cores. On other hosts the child is the ssh or
// srun that waits for it.
#pragma once

#include "net/child_pool.hpp"
#include "runtime/launch_command.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace troupe::runtime {

/// Compute threads of each device so that all devices share the host's cores.
std::uint32_t threads_per_device(std::uint32_t devices_on_host);

/// Path of the running program.
std::string own_program();

/// How this program starts the workers of a run that listens at `address`.
LaunchSpec launch_spec(const Settings& settings, const plans::Cluster& cluster,
                       const RunFolder& folder, const std::string& address,
                       const std::filesystem::path& token_file);

class Launcher {
public:
  /// `on_exit` runs on a watching thread with the worker's number, also while
  /// `start` is still busy with others; it must not wait for that.
  explicit Launcher(
    std::function<void(WorkerId, const net::ChildExit&)> on_exit);
  void start(const LaunchSpec& spec);
  /// To every process that was started and still runs.
  void signal_all(int signal);
  /// Sends SIGKILL to every worker that still runs.
  void kill_all();
  /// Waits for orderly ends; kills what is left after `grace`.
  void end_all(std::chrono::milliseconds grace);

private:
  net::ChildPool pool_;
};

} // namespace troupe::runtime
