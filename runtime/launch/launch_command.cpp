#include "runtime/launch/launch_command.hpp"

#include "config/base/error.hpp"
#include "runtime/launch/job_environment.hpp"
#include "runtime/launch/slurm_script.hpp"
#include "runtime/run_folder/run_secret.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <string_view>

namespace troupe::runtime {

namespace {

[[noreturn]] void refuse(const Settings& settings, const std::string& key,
                         const std::string& expected, const std::string& got,
                         const std::string& hint) {
  const auto path = "cluster." + key;
  // a missing setting is reported at the launcher that was requested
  const auto* place
    = was_set(settings, path) ? path.c_str() : "cluster.launcher";
  throw ConfigError({.place = place_of(settings, place),
                     .path = path,
                     .expected = expected,
                     .got = got,
                     .hint = hint});
}

/// Refuses variables that cannot reach a worker.
void check_environment(const Settings& settings) {
  for (const auto& [name, value] : worker_environment(settings)) {
    const bool names_one
      = !name.empty()
        && name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
             "TUVWXYZ0123456789_")
             == std::string::npos
        && std::isdigit(static_cast<unsigned char>(name[0])) == 0;
    if (!names_one)
      refuse(settings, "env", "names of variables", "'" + name + "'", "");
    if (value.find('\n') != std::string::npos)
      refuse(settings, "env." + name, "a value in one line", "several lines",
             "a file, and its name as the value");
  }
}

/// Returns the options of a worker; without a number the run assigns one.
std::vector<std::string> worker_options(const LaunchSpec& spec,
                                        std::optional<std::uint32_t> number) {
  std::vector<std::string> words{"--join", spec.address, "--token-file",
                                 spec.token_file};
  if (number)
    words.insert(words.end(), {"--number", std::to_string(*number)});
  words.insert(words.end(),
               {"--threads", std::to_string(spec.threads), "--bind",
                spec.listening.bind, "--ports", spec.listening.ports});
  return words;
}

/// Returns the arguments of a worker, or of a process that waits to become one.
std::vector<std::string> worker_words(const LaunchSpec& spec,
                                      std::optional<std::uint32_t> number) {
  std::vector<std::string> words{spec.program, "worker"};
  if (spec.address.empty())
    words.emplace_back("--spare");
  else
    std::ranges::move(worker_options(spec, number), std::back_inserter(words));
  return words;
}

/// Returns the command on this host, in this folder.
LaunchCommand worker_command(const LaunchSpec& spec,
                             std::optional<std::uint32_t> number) {
  LaunchCommand command{worker_words(spec, number),
                        {spec.environment.begin(), spec.environment.end()}};
  command.environment.emplace_back("OMP_NUM_THREADS",
                                   std::to_string(spec.threads));
  return command;
}

/// Returns the arguments as a shell reads them.
std::string shell_words(const std::vector<std::string>& argv) {
  std::string line;
  for (const auto& word : argv)
    line += " " + shell_quoted(word);
  return line;
}

/// Returns the command that enters the master's folder, to which relative paths
/// in the settings refer.
std::string enter_folder(const LaunchSpec& spec) {
  return "cd " + shell_quoted(spec.working_folder.string()) + " && ";
}

} // namespace

namespace {

/// Reads variables from standard input up to an empty line.
constexpr std::string_view read_environment
  = "while IFS= read -r line && [ -n \"$line\" ]; do export \"$line\"; done; ";

/// Returns the command that starts a worker over ssh. All users of both hosts
/// can see its arguments, so variables are written to its standard input, and
/// then the secret. The folder exists where files are shared.
LaunchCommand over_ssh(LaunchSpec spec, std::uint32_t number,
                       const std::string& host) {
  spec.token_file = standard_input;
  const auto command = worker_command(spec, number);
  LaunchCommand ssh;
  const auto script = fmt::format("cd {} 2>/dev/null; {}exec{}",
                                  shell_quoted(spec.working_folder.string()),
                                  read_environment, shell_words(command.argv));
  ssh.argv = {"ssh", "-o", "BatchMode=yes", host,
              "exec sh -c " + shell_quoted(script)};
  for (const auto& [name, value] : command.environment)
    ssh.input += name + "=" + value + "\n";
  ssh.input += "\n";
  ssh.reads_token = true;
  return ssh;
}

/// Returns the command that starts a worker by mpirun, which knows the site's
/// way to other hosts. Each worker has an mpirun of its own, so that one can be
/// lost and started again alone. Variables are exported by name.
LaunchCommand by_mpirun(const LaunchSpec& spec, const std::string& host,
                        LaunchCommand command) {
  std::vector<std::string> mpirun{
    "mpirun", "--quiet",   "-n",   "1",      "--host",
    host,     "--bind-to", "none", "--wdir", spec.working_folder.string()};
  for (const auto& [name, _] : command.environment)
    mpirun.insert(mpirun.end(), {"-x", name});
  command.argv.insert(command.argv.begin(), mpirun.begin(), mpirun.end());
  return command;
}

void check_hosts(const Settings& settings, std::uint32_t nodes) {
  const auto hosts = hosts_of(settings).size();
  if (hosts != nodes)
    refuse(settings, "hosts", fmt::format("{} names, one a node", nodes),
           fmt::format("{}", hosts),
           hosts == 0 ? "cluster.hosts=[HOST, ...]"
                      : fmt::format("cluster.nodes={}", hosts));
}

/// Refuses copies of a run that would all write its folder.
void check_alone(const Settings& settings) {
  if (const auto copies = processes_of_mpirun(); copies > 1)
    refuse(settings, "launcher", "one master, which starts mpirun itself",
           fmt::format("{} that mpirun started", copies),
           "troupe train without mpirun, and cluster.launcher=mpi");
}

} // namespace

std::vector<std::string> hosts_of(const Settings& settings) {
  const auto& cluster = settings.cluster;
  const bool may_be_mpi
    = cluster.launcher == "auto" || cluster.launcher == "mpi";
  return cluster.hosts.empty() && may_be_mpi ? hosts_of_this_job()
                                             : cluster.hosts;
}

namespace {

LauncherKind kind_of(const Settings& settings, std::uint32_t nodes) {
  const auto& cluster = settings.cluster;
  check_environment(settings);
  if (cluster.recovery.lost_node == "shrink" && cluster.launcher != "ssh")
    refuse(settings, "lost_node",
           "fail or wait, where workers are not started over ssh", "shrink",
           "cluster.launcher=ssh");
  if (cluster.launcher == "manual")
    return LauncherKind::manual;
  check_alone(settings);
  if (cluster.launcher == "ssh" || cluster.launcher == "mpi") {
    check_hosts(settings, nodes);
    return cluster.launcher == "ssh" ? LauncherKind::ssh : LauncherKind::mpi;
  }
  const bool slurm = cluster.launcher == "slurm";
  if (slurm && !inside_slurm())
    refuse(settings, "launcher", "slurm inside a Slurm job only", "slurm",
           "sbatch <(troupe slurm CONFIG)");
  if (slurm || (cluster.launcher == "auto" && nodes > 1 && inside_slurm()))
    return LauncherKind::slurm;
  if (cluster.launcher == "auto" && nodes > 1
      && hosts_of(settings).size() == nodes)
    return LauncherKind::mpi;
  if (nodes > 1)
    refuse(
      settings, "nodes", "1 with the local launcher", std::to_string(nodes),
      "cluster.launcher=ssh or mpi and cluster.hosts, manual, or a Slurm job");
  return LauncherKind::local;
}

} // namespace

LauncherKind launcher_of(const Settings& settings, std::uint32_t nodes) {
  const auto kind = kind_of(settings, nodes);
  if (settings.cluster.recovery.spares > 0 && kind != LauncherKind::local
      && kind != LauncherKind::ssh)
    refuse(settings, "spares",
           "0, where workers are started neither here nor over ssh",
           std::to_string(settings.cluster.recovery.spares),
           "cluster.spares=0");
  return kind;
}

std::string command_by_hand(const LaunchSpec& spec) {
  std::string line
    = enter_folder(spec) + fmt::format("env OMP_NUM_THREADS={}", spec.threads);
  for (const auto& [name, _] : spec.environment) // values are never printed
    line += fmt::format(" {0}=\"${{{0}:?}}\"", name);
  return line + shell_words(worker_words(spec, std::nullopt));
}

std::string words_for_spare(LaunchSpec spec, std::uint32_t number) {
  if (spec.launcher == LauncherKind::ssh)
    spec.token_file = standard_input;
  std::string lines;
  for (const auto& word : worker_options(spec, number))
    lines += word + "\n";
  return lines + "\n";
}

LaunchCommand launch_command(const LaunchSpec& spec, std::uint32_t number) {
  LaunchCommand command = worker_command(spec, number);
  const std::uint32_t node = number / spec.cluster.workers_per_node;
  switch (spec.launcher) {
  case LauncherKind::local:
  case LauncherKind::manual:
    break;
  case LauncherKind::ssh:
    return over_ssh(spec, number, spec.hosts.at(node));
  case LauncherKind::mpi:
    return by_mpirun(spec, spec.hosts.at(node), std::move(command));
  case LauncherKind::slurm:
    // Steps that overlap get the same first cores, so each one gets all cores
    // of the job, and the kernel distributes threads over them.
    const std::vector<std::string> srun{
      "srun",
      "--nodes=1",
      "--ntasks=1",
      fmt::format("--relative={}", node),
      fmt::format("--cpus-per-task={}", spec.cores),
      "--overlap"};
    command.argv.insert(command.argv.begin(), srun.begin(), srun.end());
    break;
  }
  return command;
}

} // namespace troupe::runtime
