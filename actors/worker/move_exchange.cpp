#include "actors/worker/move_exchange.hpp"

#include "actors/worker/shard_groups.hpp"
#include "actors/worker/shard_memory.hpp"
#include "config/base/log.hpp"
#include "models/gpu/gpu_memory.hpp"
#include "models/kernels/backend.hpp"
#include "net/collectives/group_control.hpp"
#include "net/collectives/nccl_agreement.hpp"
#include "plans/check/plan_check.hpp"
#include "plans/weights/residency.hpp"
#include "plans/weights/rounded_moves.hpp"

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
  const auto name
    = fmt::format("move-r{}-r{}", ends.source.value, ends.target.value);
  spec.name
    = fmt::format("{}-{}-{}", worker.run.id, worker.incarnation.value, name);
  for (const Rank rank : members) {
    const WorkerId home = worker.run.plan.cluster.worker_of(rank);
    spec.members.push_back({home, worker.exchange.hosts.at(home).host});
  }
  spec.index = static_cast<std::uint32_t>(std::ranges::find(members, shard.rank)
                                          - members.begin());
  return of_device(shard, name, members,
                   net::make_host_collectives(spec, worker.exchange.groups));
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

DType moved_type(const Shard& shard, const MoveEnds& ends) {
  const auto& run = shard.worker->run;
  const auto& role = shard.replica.role;
  const bool rounds
    = may_exchange(shard, ends)
      && plans::is_only_computed_with(run.workflow, run.replicas[ends.target])
      && run.settings.rollout.engine.is_own() // servers get fp32
      && !run.shapes.at(role).lora.exists();
  return rounds ? plans::product_dtype(run.settings, role) : DType::f32;
}

bool can_exchange(const Shard& shard, std::span<const Rank> members) {
  const auto why_not = net::why_no_nccl(nccl_offers(shard, members));
  if (!why_not.empty() && shard.rank == members.front())
    log::net.warn("weights go to other hosts through the host: "
                  + std::string(why_not));
  return why_not.empty();
}

MoveExchange::MoveExchange(const Shard& shard, const MoveEnds& ends,
                           const std::vector<plans::Transfer>& between)
  : shard_(&shard),
    ends_(ends),
    group_(join_members(shard, ends, plans::ends_of(between))),
    exchange_(rounds_of(shard, between)) {}

void MoveExchange::run(StepId step, std::span<std::byte> target) {
  const trace::Span span{shard_->device->track(),
                         trace::name("weights by NCCL"), step.value,
                         received_bytes()};
  const auto held = shard_->worker->exchange.weights.find(
    export_id(ends_.source, shard_->rank));
  models::Backend& gpu = gpu_backend_of(*shard_);
  exchange_.run(*group_, models::gpu_memory(), {held.bytes, target},
                [&](const models::BoxCopy& box, models::ConstTypedPtr from,
                    models::TypedPtr to) { gpu.copy_box(box, from, to); });
}

} // namespace troupe::actors
