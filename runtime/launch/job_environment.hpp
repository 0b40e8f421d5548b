// The job of a scheduler that this process runs in, by its environment: of
// Slurm, and files of hosts of PBS, LSF and Grid Engine. A job may have fewer
// cores than its host, and Slurm refuses steps that need more than the job has,
// so the number of compute threads depends on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::runtime {

/// Returns whether this process runs in a Slurm job.
bool inside_slurm();

/// Returns the hosts of a job of PBS, LSF or Grid Engine, which mpirun starts
/// processes on; outside such a job, none.
std::vector<std::string> hosts_of_this_job();

/// Returns the hosts that such a file names, each once: the first words of its
/// lines.
std::vector<std::string> hosts_in(std::string_view file_text);

/// Returns the processes that mpirun started together with this one, or 1.
std::uint32_t processes_of_mpirun();

/// Resolves `nodes: auto`: the job's nodes, else 1.
std::uint32_t nodes_of_this_job();

/// Returns the cores that this process's job has on each node, or that this
/// host has outside a job.
std::uint32_t cores_of_this_job();

/// Returns the least number of SLURM_JOB_CPUS_PER_NODE, such as 36 of
/// "72(x2),36"; nothing if there is no number.
std::optional<std::uint32_t> least_cores(std::string_view cpus_per_node);

} // namespace troupe::runtime
