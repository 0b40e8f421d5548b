// Upper bounds on the open files and sockets of a run's processes. For each
// other worker, a worker has two connections (rows in both directions) and a
// descriptor that signals the peer's end. It also has one file of shared memory
// for each plane of a replica. The master has two for each worker.
#pragma once

#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

#include <cstdint>

namespace troupe::actors {

struct OpenFiles {
  std::uint64_t master = 0;
  std::uint64_t worker = 0; ///< the one that needs most
};

OpenFiles open_files_needed(const plans::Workflow& workflow,
                            const plans::ExecutionPlan& plan);

/// Returns how many single-device workers a run may have if each process has
/// this limit.
std::uint64_t workers_within(std::uint64_t open_file_limit);

/// Throws ConfigError, with numbers and remedy, if a process with this limit
/// cannot be part of the run.
void check_open_files(const OpenFiles& needed, std::uint32_t num_workers,
                      std::uint64_t open_file_limit);

} // namespace troupe::actors
