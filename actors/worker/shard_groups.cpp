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

std::vector<Rank> ranks_of(const Shard& shard,
                           const std::vector<Coordinate>& members) {
  std::vector<Rank> ranks;
  for (const Coordinate& member : members)
    ranks.push_back(
      shard.replica.devices[index_of(shard.replica.strategy, member)]);
  return ranks;
}

/// Returns a group of devices of the shard's replica; `name` is unique among
/// them.
net::GroupSpec group_spec(const Shard& shard, const std::string& name,
                          const std::vector<Rank>& members,
                          std::uint32_t index) {
  const WorkerContext& worker = *shard.worker;
  net::GroupSpec spec;
  spec.name
    = fmt::format("{}-{}-r{}-{}", worker.run.id, worker.incarnation.value,
                  shard.replica.id.value, name);
  spec.index = index;
  for (const Rank rank : members) {
    const WorkerId home = worker.run.plan.cluster.worker_of(rank);
    spec.members.push_back({home, worker.exchange.hosts.at(home).host});
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

/// Returns a device's number among those of its host.
std::uint32_t device_of(const Shard& shard, Rank rank) {
  return rank.value
         % static_cast<std::uint32_t>(
           shard.worker->run.settings.cluster.devices_per_node.value_or(1));
}

} // namespace

std::vector<net::NcclOffer> nccl_offers(const Shard& shard,
                                        std::span<const Rank> members) {
  const WorkerContext& worker = *shard.worker;
  std::vector<net::NcclOffer> offers;
  for (const Rank rank : members) {
    const auto& gpus
      = worker.exchange.hosts.at(worker.run.plan.cluster.worker_of(rank)).gpus;
    offers.push_back(gpus.empty() ? net::NcclOffer{}
                                  : gpus[device_of(shard, rank) % gpus.size()]);
  }
  return offers;
}

std::shared_ptr<net::Collectives>
of_device(const Shard& shard, const std::string& name,
          std::span<const Rank> members,
          std::shared_ptr<net::Collectives> host) {
  if (!is_on_gpu(shard))
    return host;
  const auto gpu = gpu_of(shard);
  return net::make_nccl_collectives(
    {.group = fmt::format("{}, {}", shard.replica.name(), name),
     .host
     = net::make_staged_collectives(std::move(host), models::gpu_memory()),
     .device = gpu,
     .progress_deadline = defaults::collective_deadline,
     .offers = nccl_offers(shard, members),
     .thread_stream = [gpu] { return models::gpu_stream(gpu); }});
}

namespace {

/// Joins devices of the shard's replica; `index`: its rank among them.
std::shared_ptr<net::Collectives>
join_devices(const Shard& shard, const std::string& name,
             const std::vector<Coordinate>& members, std::uint32_t index) {
  const auto ranks = ranks_of(shard, members);
  return of_device(
    shard, name, ranks,
    net::make_host_collectives(group_spec(shard, name, ranks, index),
                               shard.worker->exchange.groups));
}

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
  return join_devices(shard, line_name(name, members[0]), members,
                      shard.where.*axis);
}

/// Joins the neighbouring dp ranks that share the tokens of their samples;
/// null: each has whole ones.
std::shared_ptr<net::Collectives> join_context(Shard& shard) {
  const Strategy& strategy = shard.replica.strategy;
  if (strategy.cp == 1)
    return nullptr;
  const auto own = context_rank_of(strategy, shard.where);
  std::vector<Coordinate> members(strategy.cp, shard.where);
  for (std::uint32_t i = 0; i < strategy.cp; ++i)
    members[i].dp = shard.where.dp - own + i;
  return join_devices(shard, line_name("cp", members[0]), members, own);
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
  return join_devices(shard, line_name("copies", members[0]), members,
                      shard.where.dp / step);
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
    channels[i] = net::make_host_channel(
      group_spec(shard, name, ranks_of(shard, ends), own < i ? 0 : 1),
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
  return join_devices(shard, line_name("ends", first), {first, last},
                      shard.where.pp == 0 ? 0 : 1);
}

/// Joins a link between GPUs: the stream goes by NCCL, in groups of its own;
/// what the host sends, and all without NCCL, by way of the hosts.
std::shared_ptr<net::Channel> join_gpu_link(const Shard& shard,
                                            const std::string& name,
                                            const std::vector<Rank>& ends,
                                            std::uint32_t end) {
  net::GroupRegistry& registry = shard.worker->exchange.groups;
  const auto staged = [](std::shared_ptr<net::Collectives> host) {
    return net::make_staged_collectives(std::move(host), models::gpu_memory());
  };
  const auto host
    = net::make_channel_groups(group_spec(shard, name, ends, end), registry);
  const auto of_streams = name + "-streams";
  const auto streams = net::make_channel_groups(
    group_spec(shard, of_streams, ends, end), registry);
  models::Backend& backend = models::gpu_backend(device_of(shard, shard.rank));
  return std::make_shared<net::Channel>(
    net::ChannelGroups{staged(host.out), staged(host.in), host.end},
    net::ChannelDevice{&models::gpu_memory(),
                       [&backend] { backend.enter(); },
                       {of_device(shard, of_streams, ends, streams.out),
                        of_device(shard, of_streams, ends, streams.in),
                        streams.end}});
}

/// Joins the channel from stage `from` to the one after it in the ring.
std::shared_ptr<net::Channel> join_link(Shard& shard, std::uint32_t from) {
  Coordinate sender = shard.where;
  Coordinate receiver = shard.where;
  sender.pp = from;
  receiver.pp = (from + 1) % shard.replica.strategy.pp;
  const auto name = line_name("link", sender);
  const auto ends = ranks_of(shard, {sender, receiver});
  const std::uint32_t end = shard.where.pp == from ? 0 : 1;
  if (is_on_gpu(shard))
    return join_gpu_link(shard, name, ends, end);
  return net::make_host_channel(group_spec(shard, name, ends, end),
                                shard.worker->exchange.groups);
}

} // namespace

int gpu_of(const Shard& shard) {
  const auto count = net::find_gpus().names.size();
  return count == 0 ? 0
                    : static_cast<int>(device_of(shard, shard.rank) % count);
}

models::Groups join_groups(Shard& shard) {
  const Strategy& strategy = shard.replica.strategy;
  models::Groups groups;
  groups.dp = join_group(shard, "dp", &Coordinate::dp, strategy.dp);
  groups.cp = join_context(shard);
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
