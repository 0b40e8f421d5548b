#include "runtime/launch/job_environment.hpp"

#include "runtime/base/jsonl_file.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

namespace troupe::runtime {

namespace {

std::string_view job_variable(const char* name) {
  const char* given = std::getenv(name);
  return given == nullptr ? std::string_view{} : std::string_view{given};
}

std::optional<std::uint32_t> first_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto result
    = std::from_chars(text.data(), text.data() + text.size(), number);
  return result.ec == std::errc{} && number > 0 ? std::optional(number)
                                                : std::nullopt;
}

} // namespace

bool inside_slurm() {
  return !job_variable("SLURM_JOB_ID").empty();
}

std::vector<std::string> hosts_in(std::string_view file_text) {
  std::vector<std::string> hosts;
  std::istringstream lines{std::string(file_text)};
  for (std::string line; std::getline(lines, line);) {
    std::string host;
    std::istringstream(line) >> host;
    if (!host.empty() && std::ranges::find(hosts, host) == hosts.end())
      hosts.push_back(host);
  }
  return hosts;
}

std::vector<std::string> hosts_of_this_job() {
  for (const char* name : {"PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE"})
    if (const auto file = job_variable(name);
        !file.empty() && std::filesystem::is_regular_file(file))
      return hosts_in(read_file(file));
  return {};
}

std::uint32_t processes_of_mpirun() {
  return first_number(job_variable("OMPI_COMM_WORLD_SIZE")).value_or(1);
}

std::uint32_t nodes_of_this_job() {
  if (const auto nodes = first_number(job_variable("SLURM_JOB_NUM_NODES")))
    return *nodes;
  const auto hosts = hosts_of_this_job().size();
  return std::max(1U, static_cast<std::uint32_t>(hosts));
}

std::optional<std::uint32_t> least_cores(std::string_view cpus_per_node) {
  std::optional<std::uint32_t> least;
  while (!cpus_per_node.empty()) {
    const auto end = std::min(cpus_per_node.find(','), cpus_per_node.size());
    const auto cores = first_number(cpus_per_node.substr(0, end));
    if (cores && (!least || *cores < *least))
      least = cores;
    cpus_per_node.remove_prefix(std::min(end + 1, cpus_per_node.size()));
  }
  return least;
}

std::uint32_t cores_of_this_job() {
  const std::uint32_t here = std::max(1U, std::thread::hardware_concurrency());
  if (!inside_slurm())
    return here;
  return least_cores(job_variable("SLURM_JOB_CPUS_PER_NODE")).value_or(here);
}

} // namespace troupe::runtime
