// Starts the worker processes of an attempt: the same binary with the command
// `worker`, a log file and a share of the cores for each. On other hosts the
// child is the ssh, srun or mpirun that waits for the worker. Spares are
// started ahead: they load the program, which takes longer than all else of a
// start, and wait on their standard input for the rest of their command line.
#pragma once

#include "net/base/descriptor.hpp"
#include "net/child_programs/child_pool.hpp"
#include "runtime/launch/launch_command.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
  using OnExit = std::function<void(WorkerId, const net::ChildExit&)>;

  Launcher();
  /// Starts spares for the first `count` workers of a later `start`. Those that
  /// end before it are started then, as are those of another command.
  void start_spares(LaunchSpec spec, std::uint32_t count);
  /// Starts the workers, once. `on_exit` is called on a watching thread with
  /// the worker's number, also while `start` is still busy with others; it must
  /// not wait for that.
  void start(const LaunchSpec& spec, OnExit on_exit);
  /// Sends `signal` to every process that was started and still runs.
  void signal_all(int signal);
  /// Returns the workers (or their ssh and srun) that a signal has stopped.
  std::vector<WorkerId> stopped() const;
  /// Sends SIGKILL to every worker that still runs.
  void kill_all();
  /// Waits for orderly ends; kills the remaining processes after `grace`.
  void end_all(std::chrono::milliseconds grace);

private:
  struct Spare {
    std::vector<std::string> argv;
    net::Descriptor input; ///< the end that is written
  };
  /// State that the watching thread shares.
  struct Watched {
    std::mutex mutex;
    std::set<WorkerId> from_spares;  ///< workers that were spares
    std::set<WorkerId> ended_spares; ///< a process of theirs may live on
    OnExit on_exit;
    std::optional<WorkerId> worker_of(std::uint32_t child);
  };

  bool use_spare(const LaunchSpec& spec, WorkerId worker);
  void start_child(const LaunchSpec& spec, WorkerId worker,
                   std::uint32_t child_number, int input);

  std::map<WorkerId, Spare> spares_;
  std::shared_ptr<Watched> watched_ = std::make_shared<Watched>();
  net::ChildPool pool_; ///< ends first
};

} // namespace troupe::runtime
