#include "actors/worker/weight_moves.hpp"

#include "actors/worker/device_jobs.hpp"
#include "actors/worker/move_exchange.hpp"
#include "actors/worker/shard_memory.hpp"
#include "actors/worker/shard_residency.hpp"
#include "config/trace/trace_at.hpp"
#include "models/kernels/ema_update.hpp"
#include "models/parallel/parameters.hpp"
#include "net/collectives/group_control.hpp"
#include "plans/weights/move_plan.hpp"
#include "plans/weights/move_rounds.hpp"
#include "plans/weights/rounded_moves.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::actors {

namespace {

/// Returns the planes that others may read: the weights, for moves; all, for
/// saving; none of what only kernels read.
std::vector<models::Plane> published_planes(const Shard& shard) {
  if (shard.engine->parameters().has_no_masters())
    return {};
  std::vector<models::Plane> planes = {models::Plane::weight};
  if (shard.engine->parameters().trainable())
    planes.insert(planes.end(), {models::Plane::m, models::Plane::v});
  return planes;
}

/// Returns where plane `plane` of `replica` is on `from`: in this process, in
/// another process of this host, also on a GPU if `device` is the memory of
/// one, or to be pulled.
models::PlaneSource find_plane(WorkerContext& worker, ReplicaId replica,
                               Rank from, models::Plane plane,
                               const net::BlockMemory* device) {
  models::PlaneSource source{
    .worker = worker.run.plan.cluster.worker_of(from),
    .id = export_id(replica, from, static_cast<std::uint8_t>(plane)),
    .bytes = {}};
  net::BlockBytes found;
  if (source.worker != worker.worker)
    found = worker.exchange.peer_memory.find(*worker.exchange.data_plane,
                                             source.worker, source.id, device);
  else
    found = worker.exchange.weights.find(source.id);
  source.bytes = found.bytes;
  source.memory = found.memory;
  return source;
}

/// Compiles the transfers of a plane of `replica` to this device.
models::WeightMove compile_move(Shard& shard,
                                std::span<const plans::Transfer> plan,
                                ReplicaId replica, models::Plane plane) {
  WorkerContext& worker = *shard.worker;
  return {plans::transfers_to(plan, shard.rank),
          [&](Rank from) {
            return find_plane(worker, replica, from, plane,
                              shard.engine->parameters().memory());
          },
          *worker.exchange.data_plane};
}

plans::Layout layout_of(const Shard& shard, const plans::Replica& replica,
                        plans::LayoutKind kind = plans::LayoutKind::weights) {
  const auto& shape = shard.worker->run.shapes.at(shard.replica.role);
  const auto moved = trained_parameters(shape);
  return plans::make_layout({moved, shape}, replica.strategy, replica.devices,
                            DType::f32, kind);
}

std::vector<plans::Transfer> plan_of(const Shard& shard, const MoveEnds& ends) {
  const auto& run = shard.worker->run;
  std::vector<bool> rounded;
  if (moved_type(shard, ends) == DType::bf16)
    rounded = plans::read_rounded(
      trained_parameters(run.shapes.at(shard.replica.role)));
  return plans::move_plan(layout_of(shard, run.replicas[ends.source]),
                          layout_of(shard, run.replicas[ends.target]),
                          run.plan.cluster, rounded);
}

/// Joins what this device exchanges with others in a move; null: nothing, or
/// not all of them can.
std::shared_ptr<MoveExchange> join_exchange(Shard& shard,
                                            const MoveEnds& ends) {
  if (!may_exchange(shard, ends))
    return nullptr;
  const auto between
    = plans::by_host(plan_of(shard, ends), shard.worker->run.plan.cluster)
        .between;
  const auto members = plans::ends_of(between);
  if (members.size() > net::kMaxHostMembers
      || !std::ranges::binary_search(members, shard.rank)
      || !can_exchange(shard, members))
    return nullptr;
  return std::make_shared<MoveExchange>(shard, ends, between);
}

/// Returns the exchange of a move, joined in its first run.
MoveExchange* exchange_of(Shard& shard, const MoveEnds& ends) {
  auto found = shard.moves.exchanges.find(ends);
  if (found == shard.moves.exchanges.end())
    found
      = shard.moves.exchanges.emplace(ends, join_exchange(shard, ends)).first;
  return found->second.get();
}

/// Returns the move from `source`, compiled at the first use: what is not
/// exchanged.
models::WeightMove& move_from(Shard& shard, ReplicaId source,
                              bool is_exchanged) {
  auto found = shard.moves.weights.find(source);
  if (found != shard.moves.weights.end())
    return found->second;
  auto plan = plan_of(shard, {source, shard.replica.id});
  if (is_exchanged)
    plan = plans::by_host(plan, shard.worker->run.plan.cluster).within;
  return shard.moves.weights
    .emplace(source, compile_move(shard, plan, source, models::Plane::weight))
    .first->second;
}

/// Returns the move from the replica's layout to whole tensors here.
models::WeightMove& whole_of(Shard& shard, models::Plane plane) {
  auto found = shard.moves.whole.find(plane);
  if (found == shard.moves.whole.end()) {
    const plans::Replica here{.devices = {shard.rank}};
    const auto kind = models::layout_kind(plane);
    found = shard.moves.whole
              .emplace(plane,
                       compile_move(
                         shard,
                         plans::move_plan(layout_of(shard, shard.replica, kind),
                                          layout_of(shard, here),
                                          shard.worker->run.plan.cluster),
                         shard.replica.id, plane))
              .first;
  }
  return found->second;
}

/// Applies the EMA update where the weights are: offloaded ones are updated in
/// host memory. Returns the checksum of the incoming weights, for
/// run.check_moves: they are fetched once more, and the move must yield what an
/// EMA update of the whole yields.
std::uint64_t ema_update(Shard& shard, models::WeightMove& move,
                         const plans::EmaSource& ema) {
  const auto newest = shard.engine->parameters().change(models::Plane::weight);
  const auto weights = newest.bytes();
  const auto& settings = shard.worker->run.settings;
  const auto staging_bytes = settings.cluster.move_staging_bytes();
  if (!settings.run.check_moves) {
    move.ema_update(weights, ema.decay, staging_bytes);
    newest.put_back();
    return 0;
  }
  std::vector<float> expected(weights.size() / sizeof(float));
  std::vector<float> incoming(expected.size()); // padding is zero
  std::memcpy(expected.data(), weights.data(), weights.size());
  move.run(std::as_writable_bytes(std::span(incoming)));
  models::ema_update(expected, incoming, ema.decay);
  move.ema_update(weights, ema.decay, staging_bytes);
  newest.put_back();
  if (std::memcmp(expected.data(), weights.data(), weights.size()) != 0)
    throw FailureError({.code = Errc::bug,
                        .who = shard.device->name(),
                        .what = "the EMA update changed the weights wrongly",
                        .cause = ""});
  return shard.engine->checksum_of(std::as_bytes(std::span(incoming)));
}

/// Overwrites the weights where they are, in the memory of the device. What
/// comes from other hosts is first: its senders wait.
void overwrite_weights(Shard& shard, StepId step, MoveExchange* exchange,
                       models::WeightMove& move) {
  auto& parameters = shard.engine->parameters();
  const auto target
    = std::as_writable_bytes(parameters.plane(models::Plane::weight));
  const auto& cluster = shard.worker->run.settings.cluster;
  if (exchange != nullptr)
    exchange->run(step, target);
  if (const auto* device = parameters.memory())
    move.run(*device, target, cluster.move_staging_bytes());
  else
    move.run(target);
}

} // namespace

void publish_planes(Shard& shard) {
  WorkerContext& worker = *shard.worker;
  for (const auto plane : published_planes(shard)) {
    const auto id = export_id(shard.replica.id, shard.rank,
                              static_cast<std::uint8_t>(plane));
    const auto& block = shard.engine->parameters().published(plane);
    worker.exchange.weights.publish(
      id, {{block.data(), block.size_bytes()}, block.memory()});
    worker.exchange.data_plane->export_memory(
      id, {block.data(), block.size_bytes(), block.memory()});
    if (const auto place = block.place()) {
      shard.places.push_back(std::make_unique<net::MemoryHandle>(*place));
      worker.exchange.data_plane->export_memory(net::handle_id(id),
                                                shard.places.back().get(),
                                                sizeof(net::MemoryHandle));
    }
  }
}

MoveDone move_shard(Shard& shard, StepId step, const MoveOrder& order) {
  const trace::Span span{shard.device->track(), trace::name("move"),
                         step.value};
  MoveDone done;
  done.begin_ns = trace::now_ns();
  begin_peak(shard);
  auto* exchange = exchange_of(shard, {order.source, order.target});
  auto& move = move_from(shard, order.source, exchange != nullptr);
  const auto& ema = shard.worker->run.workflow.role(shard.replica.role).ema;
  if (ema) {
    done.checksum = ema_update(shard, move, *ema);
  } else {
    shard.engine->expect_weights();
    overwrite_weights(shard, step, exchange, move);
  }
  done.bytes = move.moved_bytes();
  done.wire_bytes = move.foreign_bytes(shard.worker->worker);
  if (exchange != nullptr) {
    done.bytes += exchange->received_bytes();
    done.wire_bytes += exchange->received_bytes();
  }
  shard.engine->weights_changed();
  done.busy_ns = trace::now_ns() - done.begin_ns;
  done.peaks = peaks_of(shard);
  count_planes(shard);
  if (shard.worker->run.settings.run.check_moves && !ema)
    done.checksum
      = shard.engine->checksum(moved_type(shard, {order.source, order.target}));
  return done;
}

MoveDone send_shard(Shard& shard, StepId step, const MoveOrder& order) {
  const trace::Span span{shard.device->track(), trace::name("move"),
                         step.value};
  MoveDone done;
  done.begin_ns = trace::now_ns();
  if (auto* exchange = exchange_of(shard, {order.source, order.target}))
    exchange->run(step, {});
  done.busy_ns = trace::now_ns() - done.begin_ns;
  return done;
}

void gather_weights(Shard& shard, std::span<std::byte> whole) {
  whole_of(shard, models::Plane::weight).run(whole);
}

/// Moves from a replica's layout to whole tensors here. Other shards' planes
/// are read in place: weights must not change until the copy is done.
CopyDone copy_shard(Shard& shard, StepId step, const CopyOrder& order) {
  const trace::Span span{shard.device->track(), trace::name("copy"),
                         step.value};
  shard.engine->describe(shard.snapshot, order.moments);
  CopyDone done;
  for (const auto plane : published_planes(shard)) {
    const bool weights = plane == models::Plane::weight;
    if (!weights && !order.moments)
      continue;
    const auto room = shard.snapshot.room(plane);
    whole_of(shard, plane).run(room);
    if (weights)
      done.bytes = room.size();
  }
  return done;
}

} // namespace troupe::actors
