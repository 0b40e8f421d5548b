#include "runtime/launch_command.hpp"

#include "config/error.hpp"
#include "runtime/slurm_script.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>

namespace troupe::runtime {

namespace {

bool inside_slurm() {
  return std::getenv("SLURM_JOB_ID") != nullptr;
}

[[noreturn]] void refuse(const Settings& settings, const std::string& key,
                         const std::string& expected, const std::string& got,
                         const std::string& hint) {
  const auto path = "cluster." + key;
  // what was left out is missed by the launcher that was asked for
  const auto* place
    = was_set(settings, path) ? path.c_str() : "cluster.launcher";
  throw ConfigError({.place = place_of(settings, place),
                     .path = path,
                     .expected = expected,
                     .got = got,
                     .hint = hint});
}

/// Without a number the run finds the worker one.
std::vector<std::string> worker_words(const LaunchSpec& spec,
                                      std::optional<std::uint32_t> number) {
  std::vector<std::string> words{spec.program, "worker",       "--join",
                                 spec.address, "--token-file", spec.token_file};
  if (number)
    words.insert(words.end(), {"--number", std::to_string(*number)});
  words.insert(words.end(), {"--threads", std::to_string(spec.threads),
                             "--bind", spec.bind, "--ports", spec.ports});
  return words;
}

/// On this host, in this folder.
LaunchCommand worker_command(const LaunchSpec& spec,
                             std::optional<std::uint32_t> number) {
  LaunchCommand command{worker_words(spec, number),
                        {spec.environment.begin(), spec.environment.end()}};
  command.environment.emplace_back("OMP_NUM_THREADS",
                                   std::to_string(spec.threads));
  return command;
}

/// `begin`, then environment and words as a shell reads them.
std::string shell_line(const std::string& begin, const LaunchCommand& command) {
  std::string line = begin + "env";
  for (const auto& [name, value] : command.environment)
    line += " " + shell_quoted(name + "=" + value);
  for (const auto& word : command.argv)
    line += " " + shell_quoted(word);
  return line;
}

/// Relative paths in the settings are those of the master's folder.
std::string enter_folder(const LaunchSpec& spec) {
  return "cd " + shell_quoted(spec.working_folder.string()) + " && ";
}

} // namespace

LauncherKind launcher_of(const Settings& settings, std::uint32_t nodes) {
  const auto& cluster = settings.cluster;
  if (cluster.launcher == "manual")
    return LauncherKind::manual;
  if (cluster.launcher == "ssh") {
    if (cluster.hosts.size() != nodes)
      refuse(settings, "hosts", fmt::format("{} names, one a node", nodes),
             fmt::format("{}", cluster.hosts.size()),
             cluster.hosts.empty()
               ? "cluster.hosts=[HOST, ...]"
               : fmt::format("cluster.nodes={}", cluster.hosts.size()));
    return LauncherKind::ssh;
  }
  const bool slurm = cluster.launcher == "slurm";
  if (slurm && !inside_slurm())
    refuse(settings, "launcher", "slurm inside a Slurm job only", "slurm",
           "sbatch <(troupe slurm CONFIG)");
  if (slurm || (cluster.launcher == "auto" && nodes > 1 && inside_slurm()))
    return LauncherKind::slurm;
  if (nodes > 1)
    refuse(settings, "nodes", "1 with the local launcher",
           std::to_string(nodes),
           "cluster.launcher=ssh and cluster.hosts, manual, or a Slurm job");
  return LauncherKind::local;
}

std::uint32_t nodes_of_this_job() {
  const char* given = std::getenv("SLURM_JOB_NUM_NODES");
  std::uint32_t nodes = 1;
  if (given != nullptr)
    std::from_chars(given, given + std::string_view(given).size(), nodes);
  return std::max(1U, nodes);
}

std::string command_by_hand(const LaunchSpec& spec) {
  return shell_line(enter_folder(spec), worker_command(spec, std::nullopt));
}

LaunchCommand launch_command(const LaunchSpec& spec, std::uint32_t number) {
  LaunchCommand command = worker_command(spec, number);
  const std::uint32_t node = number / spec.cluster.workers_per_node;
  switch (spec.launcher) {
  case LauncherKind::local:
  case LauncherKind::manual:
    break;
  case LauncherKind::ssh:
    return {{"ssh", "-o", "BatchMode=yes", spec.hosts.at(node),
             shell_line(enter_folder(spec) + "exec ", command)},
            {}};
  case LauncherKind::slurm:
    const auto devices
      = (spec.cluster.devices_per_node - 1) / spec.cluster.workers_per_node + 1;
    const std::vector<std::string> srun{
      "srun",
      "--nodes=1",
      "--ntasks=1",
      fmt::format("--relative={}", node),
      fmt::format("--cpus-per-task={}", devices * spec.threads),
      "--overlap"};
    command.argv.insert(command.argv.begin(), srun.begin(), srun.end());
    break;
  }
  return command;
}

} // namespace troupe::runtime
