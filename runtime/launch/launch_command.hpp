// Command lines that start workers: the same one on this host, over ssh, as a
// step of a Slurm job or by mpirun. Each host has the program; over ssh it
// needs no other file of this one.
#pragma once

#include "config/settings/settings.hpp"
#include "plans/plan/execution_plan.hpp"
#include "runtime/run_folder/run_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::runtime {

enum class LauncherKind : std::uint8_t { local, ssh, slurm, mpi, manual };

/// Returns the hosts of `cluster.hosts`, or for mpi those of the job.
std::vector<std::string> hosts_of(const Settings& settings);

/// Resolves `cluster.launcher` for so many nodes. Throws ConfigError if the
/// settings cannot start them: more than one node on the local launcher,
/// numbers of hosts and nodes that differ, slurm outside a job, a run that
/// mpirun started several times.
LauncherKind launcher_of(const Settings& settings, std::uint32_t nodes);

/// The addresses and ports that workers listen on.
struct WorkerListening {
  std::string bind = "auto";  ///< cluster.bind
  std::string ports = "auto"; ///< cluster.ports
};

struct LaunchSpec {
  LauncherKind launcher = LauncherKind::local;
  std::vector<std::string> hosts; ///< ssh and mpi: one per node
  std::string program;            ///< path of this binary
  std::string address; ///< HOST:PORT of the join actor; empty: not known yet
  std::filesystem::path token_file;
  plans::Cluster cluster;
  std::uint32_t threads = 1; ///< per device
  std::uint32_t cores = 1;   ///< of a node, for this job
  WorkerListening listening;
  std::map<std::string, std::string> environment; ///< cluster.env
  std::filesystem::path working_folder;           ///< for remote workers
  RunFolder folder;
};

struct LaunchCommand {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>>
    environment;     ///< variables to add
  std::string input; ///< what the program reads; empty: nothing
  /// Says that the contents of the token file follow in its input: the
  /// worker's host may not have the file.
  bool reads_token = false;
};

/// Returns what a person runs on a host for the next worker, as one line for a
/// shell: this program, also if it is not troupe.
std::string command_by_hand(const LaunchSpec& spec);
/// Returns the command of worker `number`; workers fill nodes in order. Without
/// an address, that of a process that waits to become this worker.
LaunchCommand launch_command(const LaunchSpec& spec, std::uint32_t number);
/// Returns what makes a process that waits worker `number`, as it reads it: the
/// rest of its command line, an argument a line, up to an empty line.
std::string words_for_spare(LaunchSpec spec, std::uint32_t number);

} // namespace troupe::runtime
