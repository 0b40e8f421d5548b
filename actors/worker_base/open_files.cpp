#include "actors/worker_base/open_files.hpp"

#include "config/base/error.hpp"
#include "net/base/defaults.hpp"
#include "plans/weights/replicas.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

/// Logs, traces, events, data files, and room for reward programs.
constexpr std::uint64_t files_of_a_process = 48;
/// Strangers at the data plane of a worker.
constexpr std::uint64_t strangers_of_a_worker = net::kMaxUngreeted;
/// Strangers at the endpoint, the page and the Prometheus port of the master.
constexpr std::uint64_t strangers_of_the_master = 3 * net::kMaxUngreeted;
constexpr std::uint64_t files_of_a_worker = 2; ///< in the master
constexpr std::uint64_t files_of_a_peer = 3;   ///< in a worker
/// Weights and two moments of a trained role.
constexpr std::uint64_t planes_of_a_trained = 3;
/// Planes on a device of PPO, whose four models all have a replica on it.
constexpr std::uint64_t planes_of_a_device = 8;

} // namespace

OpenFiles open_files_needed(const plans::Workflow& workflow,
                            const plans::ExecutionPlan& plan) {
  const auto workers = plan.cluster.num_workers();
  const auto replicas = plans::replicas_of(workflow, plan);
  std::uint64_t most_planes = 0;
  for (std::uint32_t worker = 0; worker < workers; ++worker) {
    const auto own = plan.cluster.devices_of(WorkerId{worker});
    std::uint64_t planes = 0;
    for (const auto& replica : replicas.all)
      planes += (workflow.role(replica.role).trained ? planes_of_a_trained : 1)
                * static_cast<std::uint64_t>(
                  std::ranges::count_if(replica.devices, [&](Rank device) {
                    return std::ranges::find(own, device) != own.end();
                  }));
    most_planes = std::max(most_planes, planes);
  }
  return {.master = files_of_a_process + strangers_of_the_master
                    + files_of_a_worker * workers,
          .worker = files_of_a_process + strangers_of_a_worker
                    + files_of_a_peer * workers + most_planes};
}

std::uint64_t workers_within(std::uint64_t open_file_limit) {
  constexpr auto fixed
    = files_of_a_process + strangers_of_a_worker + planes_of_a_device;
  return open_file_limit <= fixed ? 0
                                  : (open_file_limit - fixed) / files_of_a_peer;
}

void check_open_files(const OpenFiles& needed, std::uint32_t num_workers,
                      std::uint64_t open_file_limit) {
  const auto most = std::max(needed.master, needed.worker);
  if (most <= open_file_limit)
    return;
  throw ConfigError(
    Place{},
    fmt::format("cluster: a run of {} workers needs up to {} open files in the "
                "master and {} in a worker, but the limit of a process is {}; "
                "try `ulimit -n {}` before it (`ulimit -Hn` shows how far that "
                "goes), or fewer workers with more devices each "
                "(cluster.workers_per_node)",
                num_workers, needed.master, needed.worker, open_file_limit,
                most));
}

} // namespace troupe::actors
