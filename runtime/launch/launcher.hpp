// Starts a run's worker processes: the same binary with the command `worker`, a
// log file and a share of the cores for each. On other hosts the child is the
// ssh, srun or mpirun that waits for the worker.
#pragma once

#include "net/child_programs/child_pool.hpp"
#include "runtime/launch/launch_command.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace troupe::runtime {

/// Returns the compute threads per device with which all devices share the
/// host's cores, or those that a Slurm job has there.
std::uint32_t threads_per_device(std::uint32_t devices_on_host);

/// Returns the path of the running program.
std::string user_program();

/// Returns the specification by which this program starts the workers of a run
/// that listens at `address`.
LaunchSpec launch_spec(const Settings& settings, const plans::Cluster& cluster,
                       const RunFolder& folder, const std::string& address,
                       const std::filesystem::path& token_file);

class Launcher {
public:
  /// `on_exit` is called on a watching thread with the worker's number, also
  /// while `start` is still busy with others; it must not wait for that.
  explicit Launcher(
    std::function<void(WorkerId, const net::ChildExit&)> on_exit);
  void start(const LaunchSpec& spec);
  /// Sends `signal` to every process that was started and still runs.
  void signal_all(int signal);
  /// Returns the workers (or their ssh and srun) that a signal has stopped.
  std::vector<WorkerId> stopped() const;
  /// Sends SIGKILL to every worker that still runs.
  void kill_all();
  /// Waits for orderly ends; kills the remaining processes after `grace`.
  void end_all(std::chrono::milliseconds grace);

private:
  net::ChildPool pool_;
};

} // namespace troupe::runtime
