// How a worker is started: the same command line on this host, over ssh or as a
// step of a Slurm job. Hosts share the file system that the run folder, the
// models and the program are in, as clusters do.
#pragma once

#include "config/settings.hpp"
#include "plans/execution_plan.hpp"
#include "runtime/run_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::runtime {

enum class LauncherKind : std::uint8_t { local, ssh, slurm, manual };

/// What `cluster.launcher` means for so many nodes. Throws ConfigError where
/// the settings cannot start them: more than one node on the local launcher,
/// hosts that are not as many as nodes, slurm outside a job.
LauncherKind launcher_of(const Settings& settings, std::uint32_t nodes);

/// `nodes: auto`: the Slurm job's, else 1.
std::uint32_t nodes_of_this_job();

struct LaunchSpec {
  LauncherKind launcher = LauncherKind::local;
  std::vector<std::string> hosts; ///< of ssh, one a node
  std::string program;            ///< path of this binary
  std::string address;            ///< HOST:PORT of the lobby
  std::filesystem::path token_file;
  plans::Cluster cluster;
  std::uint32_t threads = 1;                      ///< of each device
  std::string bind = "auto";                      ///< cluster.bind
  std::string ports = "auto";                     ///< cluster.ports
  std::map<std::string, std::string> environment; ///< cluster.env
  std::filesystem::path working_folder;           ///< of remote workers
  RunFolder folder;
};

struct LaunchCommand {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment; ///< added
};

/// What a person runs on a host for the next worker, as one line for a shell:
/// this program, also where it is no troupe.
std::string command_by_hand(const LaunchSpec& spec);
/// Of worker `number`; workers fill nodes in order.
LaunchCommand launch_command(const LaunchSpec& spec, std::uint32_t number);

} // namespace troupe::runtime
