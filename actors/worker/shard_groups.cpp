#include "actors/worker/shard_groups.hpp"

#include "config/base/defaults.hpp"
#include "models/gpu/gpu.hpp"
#include "models/gpu/gpu_memory.hpp"
#include "models/kernels/backend.hpp"
#include "net/base/gpus.hpp"
#include "net/collectives/all_to_all.hpp"
#include "net/collectives/nccl_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

/// Returns a group of devices of the shard's replica; `name` is unique among
/// them.
net::GroupSpec group_spec(const Shard& shard, const std::string& name,
                          const std::vector<Coordinate>& members,
                          std::uint32_t index) {
  const WorkerContext& worker = *shard.worker;
  net::GroupSpec spec;
  spec.name
    = fmt::format("{}-{}-r{}-{}", worker.run.id, worker.incarnation.value,
                  shard.replica.id.value, name);
  spec.index = index;
  for (const Coordinate& member : members) {
    const Rank rank
      = shard.replica.devices[index_of(shard.replica.strategy, member)];
    const WorkerId home = worker.run.plan.cluster.worker_of(rank);
    spec.members.push_back({home, worker.exchange.hosts.at(home)});
  }
  return spec;
}

/// Returns "dp-p1t0": the coordinates that the members of a line along an axis
/// share.
std::string line_name(const char* axis, const Coordinate& first) {
  return fmt::format("{}-d{}p{}t{}", axis, first.dp, first.pp, first.tp);
}

bool is_on_gpu(const Shard& shard) {
  return shard.worker->run.settings.cluster.device == "gpu";
}

/// Returns the shard's device among those of its host.
std::uint32_t device_of(const Shard& shard) {
  return shard.rank.value
         % static_cast<std::uint32_t>(
           shard.worker->run.settings.cluster.devices_per_node.value_or(1));
}

} // namespace

std::shared_ptr<net::Collectives>
of_device(const Shard& shard, std::shared_ptr<net::Collectives> host) {
  if (!is_on_gpu(shard))
    return host;
  const auto gpus = net::find_gpus();
  const auto gpu = gpu_of(shard);
  return net::make_nccl_collectives(
    {.host
     = net::make_staged_collectives(std::move(host), models::gpu_memory()),
     .device = gpu,
     .progress_deadline = defaults::collective_deadline,
     .gpu = gpus.ids.at(static_cast<std::size_t>(gpu)),
     .thread_stream = [gpu] { return models::gpu_stream(gpu); }});
}

namespace {

/// Joins the shard's group along one mesh axis: the devices whose coordinates
/// differ in `axis` alone. Null for a group of one.
std::shared_ptr<net::Collectives> join_group(Shard& shard, const char* name,
                                             std::uint32_t Coordinate::*axis,
                                             std::uint32_t size) {
  if (size == 1)
    return nullptr;
  std::vector<Coordinate> members(size, shard.where);
  for (std::uint32_t i = 0; i < size; ++i)
    members[i].*axis = i;
  return of_device(shard, net::make_host_collectives(
                            group_spec(shard, line_name(name, members[0]),
                                       members, shard.where.*axis),
                            shard.worker->exchange.groups));
}

/// Joins the dp ranks that hold the same experts; null: no other one does.
std::shared_ptr<net::Collectives> join_expert_copies(Shard& shard) {
  const Strategy& strategy = shard.replica.strategy;
  const std::uint32_t step = strategy.expert_group_dp();
  if (step == 1 || strategy.dp == step)
    return nullptr;
  std::vector<Coordinate> members(strategy.dp / step, shard.where);
  for (std::uint32_t i = 0; i < members.size(); ++i)
    members[i].dp = shard.where.dp % step + i * step;
  return of_device(shard, net::make_host_collectives(
                            group_spec(shard, line_name("copies", members[0]),
                                       members, shard.where.dp / step),
                            shard.worker->exchange.groups));
}

/// Joins the neighbouring dp ranks that have a layer's experts between them,
/// by a channel to each; null: this one has all.
std::shared_ptr<net::AllToAll> join_experts(Shard& shard) {
  const std::uint32_t size = shard.replica.strategy.expert_group_dp();
  if (size == 1)
    return nullptr;
  const std::uint32_t own = shard.where.dp % size;
  std::vector<std::shared_ptr<net::Channel>> channels(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    if (i == own)
      continue;
    std::vector<Coordinate> ends(2, shard.where);
    ends[0].dp += std::min(i, own) - own;
    ends[1].dp += std::max(i, own) - own;
    const auto name
      = line_name("experts", ends[0]) + fmt::format("-d{}", ends[1].dp);
    channels[i]
      = net::make_host_channel(group_spec(shard, name, ends, own < i ? 0 : 1),
                               shard.worker->exchange.groups);
  }
  return std::make_shared<net::AllToAll>(std::move(channels), own);
}

/// Joins the two ends of a pipeline whose embeddings are tied.
std::shared_ptr<net::Collectives> join_ends(Shard& shard) {
  const auto stages = shard.replica.strategy.pp;
  const bool end = shard.where.pp == 0 || shard.where.pp + 1 == stages;
  const ModelShape& shape = shard.engine->shape();
  if (stages == 1 || !end || !shape.tied_embeddings || shape.scalar_head)
    return nullptr;
  Coordinate first = shard.where;
  Coordinate last = shard.where;
  first.pp = 0;
  last.pp = stages - 1;
  return of_device(shard,
                   net::make_host_collectives(
                     group_spec(shard, line_name("ends", first), {first, last},
                                shard.where.pp == 0 ? 0 : 1),
                     shard.worker->exchange.groups));
}

/// Returns the device whose memory the shard's links take.
net::ChannelDevice link_device(const Shard& shard) {
  if (!is_on_gpu(shard))
    return {};
  models::Backend& backend = models::gpu_backend(device_of(shard));
  return {&models::gpu_memory(), [&backend] { backend.enter(); }};
}

/// Joins the channel from stage `from` to the one after it in the ring.
std::shared_ptr<net::Channel> join_link(Shard& shard, std::uint32_t from) {
  Coordinate sender = shard.where;
  Coordinate receiver = shard.where;
  sender.pp = from;
  receiver.pp = (from + 1) % shard.replica.strategy.pp;
  const auto host = net::make_channel_groups(
    group_spec(shard, line_name("link", sender), {sender, receiver},
               shard.where.pp == from ? 0 : 1),
    shard.worker->exchange.groups);
  return std::make_shared<net::Channel>(
    net::ChannelGroups{of_device(shard, host.out), of_device(shard, host.in)},
    link_device(shard));
}

} // namespace

int gpu_of(const Shard& shard) {
  const auto count = net::find_gpus().names.size();
  return count == 0 ? 0 : static_cast<int>(device_of(shard) % count);
}

models::Groups join_groups(Shard& shard) {
  const Strategy& strategy = shard.replica.strategy;
  models::Groups groups;
  groups.dp = join_group(shard, "dp", &Coordinate::dp, strategy.dp);
  groups.tp = join_group(shard, "tp", &Coordinate::tp, strategy.tp);
  groups.pp = join_group(shard, "pp", &Coordinate::pp, strategy.pp);
  groups.experts = join_experts(shard);
  groups.expert_copies = join_expert_copies(shard);
  if (strategy.pp == 1)
    return groups;
  groups.ends = join_ends(shard);
  const auto stage = shard.where.pp;
  groups.previous = join_link(shard, (stage + strategy.pp - 1) % strategy.pp);
  groups.next = join_link(shard, stage);
  return groups;
}

} // namespace troupe::actors
