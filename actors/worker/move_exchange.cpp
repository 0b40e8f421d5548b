#include "actors/worker/move_exchange.hpp"

#include "actors/worker/shard_groups.hpp"
#include "config/base/log.hpp"
#include "models/gpu/gpu_memory.hpp"
#include "net/base/gpus.hpp"
#include "net/collectives/group_control.hpp"
#include "net/collectives/nccl_agreement.hpp"
#include "net/collectives/nccl_library.hpp"
#include "plans/weights/residency.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

/// Returns the group of the move; a later incarnation's has another name.
std::shared_ptr<net::Collectives> join_members(const Shard& shard,
                                               const MoveEnds& ends,
                                               std::span<const Rank> members) {
  WorkerContext& worker = *shard.worker;
  net::GroupSpec spec;
  spec.name
    = fmt::format("{}-{}-move-r{}-r{}", worker.run.id, worker.incarnation.value,
                  ends.source.value, ends.target.value);
  for (const Rank rank : members) {
    const WorkerId home = worker.run.plan.cluster.worker_of(rank);
    spec.members.push_back({home, worker.exchange.hosts.at(home)});
  }
  spec.index = static_cast<std::uint32_t>(std::ranges::find(members, shard.rank)
                                          - members.begin());
  return net::make_host_collectives(spec, worker.exchange.groups);
}

models::WeightExchange rounds_of(const Shard& shard,
                                 const std::vector<plans::Transfer>& between) {
  return models::WeightExchange(plans::move_rounds(
    between, plans::ends_of(between), shard.rank,
    shard.worker->run.settings.cluster.move_staging_bytes()));
}

} // namespace

bool may_exchange(const Shard& shard, const MoveEnds& ends) {
  const auto& run = shard.worker->run;
  const auto& source = run.replicas[ends.source];
  const auto& target = run.replicas[ends.target];
  return run.settings.cluster.device == "gpu" && run.plan.cluster.nodes > 1
         && !run.workflow.role(target.role).ema
         && !plans::leaves(run.workflow, run.plan, source).offload_weights;
}

MoveExchange::MoveExchange(const Shard& shard, const MoveEnds& ends,
                           const std::vector<plans::Transfer>& between)
  : shard_(&shard),
    ends_(ends),
    group_(join_members(shard, ends, plans::ends_of(between))),
    exchange_(rounds_of(shard, between)) {}

bool MoveExchange::agree() {
  const auto gpu
    = net::find_gpus().ids.at(static_cast<std::size_t>(gpu_of(*shard_)));
  const auto why_not = net::why_no_nccl(
    *group_, {gpu, net::NcclLibrary::machine().why_not.empty() ? 1 : 0});
  if (why_not.empty())
    group_ = of_device(*shard_, std::move(group_));
  else if (group_->rank() == 0)
    log::net.warn("weights go to other hosts through the host: "
                  + std::string(why_not));
  return why_not.empty();
}

void MoveExchange::run(StepId step, std::span<std::byte> target) {
  const trace::Span span{shard_->device->track(),
                         trace::name("weights by NCCL"), step.value,
                         received_bytes()};
  const auto held = shard_->worker->exchange.weights.find(
    export_id(ends_.source, shard_->rank));
  exchange_.run(*group_, models::gpu_memory(), {held.bytes, target});
}

} // namespace troupe::actors
