#include "runtime/launch/slurm_script.hpp"

#include "config/base/error.hpp"
#include "config/base/plain_text.hpp"
#include "config/settings/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace troupe::runtime {

namespace {

/// Time by which Slurm sends TERM before the job's end: enough for a
/// checkpoint.
constexpr int term_before_end_s = 120;

std::string slurm_time(const std::string& max_time) {
  const auto seconds = parse_duration_s(max_time);
  if (max_time.empty() || !seconds)
    return "##SBATCH --time=24:00:00\n";
  // the run saves at max_time; the job needs a little longer
  const auto minutes
    = static_cast<long>(std::ceil((*seconds + 2 * term_before_end_s) / 60));
  return fmt::format("#SBATCH --time={}\n", minutes);
}

bool on_gpus(const ClusterSettings& cluster) {
  return cluster.device == "gpu" || cluster.device == "cuda";
}

/// Returns the worker processes of a node: one per GPU, or one for all CPU
/// slots.
int workers_of_node(const ClusterSettings& cluster) {
  const int unset = on_gpus(cluster) ? cluster.devices_per_node.value_or(1) : 1;
  return std::max(1, cluster.workers_per_node.value_or(unset));
}

/// Returns what a job gets of its nodes: the cores of the CPU devices that the
/// config names, else whole nodes, so that the run finds all that they have.
std::string share_of_node(const ClusterSettings& cluster) {
  if (!cluster.devices_per_node)
    return "#SBATCH --exclusive\n";
  const int devices = *cluster.devices_per_node;
  if (on_gpus(cluster))
    return fmt::format("#SBATCH --exclusive\n#SBATCH --gpus-per-node={}\n",
                       devices);
  const int workers = workers_of_node(cluster);
  return fmt::format("#SBATCH --cpus-per-task={}\n",
                     (devices + workers - 1) / workers);
}

} // namespace

std::string shell_quoted(const std::string& text) {
  const bool plain
    = !text.empty()
      && text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
                                "TUVWXYZ0123456789_./=:,+-")
           == std::string::npos;
  if (plain)
    return text;
  std::string quoted = "'";
  for (const char letter : text)
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

namespace {

/// Returns a value for a line that begins with #SBATCH: the line's end is that
/// of the comment, whatever the quotes say.
std::string in_one_line(const std::string& what, const std::string& text) {
  if (!is_plain_text(text))
    throw ConfigError({.place = {},
                       .path = what,
                       .expected = "a name in one line",
                       .got = "one with other characters",
                       .hint = ""});
  return shell_quoted(text);
}

} // namespace

std::string slurm_script(const Settings& settings, const std::string& program,
                         const std::vector<std::string>& words,
                         const std::filesystem::path& folder) {
  std::string command = shell_quoted(program) + " train";
  for (const auto& word : words)
    command += " " + shell_quoted(word);
  const auto& cluster = settings.cluster;
  return fmt::format(
    R"sh(#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node={workers}
{share}#SBATCH --chdir={folder}
#SBATCH --signal=B:TERM@{early_s}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x_%j.log

# What only your cluster knows: a line counts once it begins with a single #.
# run.max_time in the config sets --time. --mem=0 is all memory of a node.
{time}##SBATCH --partition=NAME
##SBATCH --account=NAME
##SBATCH --mem=0

# TERM makes the run save a checkpoint and exit with code 75: queue it again.
{command} &
run=$!
trap 'kill -TERM "$run"' TERM
wait "$run"
code=$?
# a trapped signal ends the first wait early
while kill -0 "$run" 2>/dev/null; do
  wait "$run"
  code=$?
done
# a job that was cancelled is no longer RUNNING, and must stay cancelled
if [ "$code" -eq 75 ] \
  && [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" = RUNNING ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
)sh",
    fmt::arg("name", in_one_line("run.name", settings.run.name)),
    fmt::arg("nodes", cluster.nodes.value_or(1)),
    fmt::arg("workers", workers_of_node(cluster)),
    fmt::arg("share", share_of_node(cluster)),
    fmt::arg("folder", in_one_line("working folder", folder.string())),
    fmt::arg("time", slurm_time(settings.run.max_time)),
    fmt::arg("early_s", term_before_end_s), fmt::arg("command", command));
}

} // namespace troupe::runtime
