#include "actors/worker/shard_actor.hpp"

#include "actors/worker/device_jobs.hpp"
#include "actors/worker/move_exchange.hpp"
#include "actors/worker/shard_generate.hpp"
#include "actors/worker/shard_residency.hpp"
#include "actors/worker/shard_server.hpp"
#include "actors/worker/shard_snapshot.hpp"
#include "actors/worker/weight_moves.hpp"
#include "plans/schedule/step_graph.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using ShardSelf = Self<ShardActor, ShardState>;

/// Returns what is wrong with an order for this shard, if anything (I4).
std::optional<Failure> refuse(const ShardState& state, const Context& context,
                              Version wanted) {
  Failure failure{
    .code = Errc::stale, .who = state.name, .what = "", .cause = ""};
  if (context.incarnation != state.shard->worker->incarnation) {
    failure.what = "a message of an older incarnation";
    return failure;
  }
  if (!state.loaded || state.version != wanted) {
    failure.what
      = fmt::format("I4: the plan wants version {} of {}, this shard has {}",
                    wanted.value, state.shard->replica.role,
                    state.loaded ? to_string(state.version) : "none");
    return failure;
  }
  return std::nullopt;
}

/// Queues `work` on the thread and replies with its result.
template <class Done, class Work>
caf::result<Done> on_thread(ShardSelf self, JobThread& thread,
                            const Context& context, std::string what, Work work,
                            std::function<void(Done&)> on_value = {}) {
  Reply<Done> reply{self, context};
  const auto& shard = self->state.shard;
  auto callback = self->state.open.open(self, reply, std::move(on_value));
  run_job<Done>(
    thread,
    fmt::format("{}, {}, {}", shard->worker->who, self->state.name, what),
    std::move(callback), std::move(work));
  return reply.promise();
}

template <class Done, class Work>
caf::result<Done> on_device(ShardSelf self, const Context& context,
                            std::string what, Work work,
                            std::function<void(Done&)> on_value = {}) {
  return on_thread<Done>(self, *self->state.shard->device, context,
                         std::move(what), std::move(work), std::move(on_value));
}

caf::result<LoadDone> load(ShardSelf self, const Context& context,
                           const LoadOrder& order) {
  auto shard = self->state.shard;
  return on_device<LoadDone>(
    self, context, "load",
    [=] {
      shard->worker->threads.shards.at(shard->rank)[shard->replica.id] = shard;
      return load_shard(*shard, order);
    },
    [=](LoadDone&) {
      self->state.loaded = !order.shape_only;
      self->state.version = order.version;
    });
}

/// Generates, beginning with the last of the chunks that share a batch.
caf::result<RunDone> generate(ShardSelf self, const Context& context,
                              const RunOrder& order) {
  Reply<RunDone> reply{self, context};
  auto& state = self->state;
  auto chunks = state.chunks.put({context.step, order,
                                  state.inbox.take(context.step, order),
                                  state.open.open(self, reply)});
  if (!chunks.empty())
    state.shard->device->post(
      [shard = state.shard,
       who = fmt::format("{}, {}, {} of step {}", state.shard->worker->who,
                         state.name, order.call, step_number(context.step)),
       chunks = std::move(chunks)] { generate_chunks(*shard, who, chunks); });
  return reply.promise();
}

caf::result<RunDone> run(ShardSelf self, const Context& context,
                         const RunOrder& order) {
  if (const auto failure = refuse(self->state, context, order.version))
    return to_error(*failure);
  auto shard = self->state.shard;
  const auto kind = shard->worker->run.workflow.call(order.call).kind;
  if (kind == plans::CallKind::generate)
    return generate(self, context, order);
  auto rows
    = std::make_shared<net::Rows>(self->state.inbox.take(context.step, order));
  const bool trains = kind == plans::CallKind::train;
  return on_device<RunDone>(
    self, context,
    fmt::format("{} of step {}", order.call, step_number(context.step)),
    [=, step = context.step] { return run_shard(*shard, step, order, *rows); },
    [=](RunDone&) {
      if (trains)
        self->state.version = Version{self->state.version.value + 1};
    });
}

caf::result<PublishDone> publish(ShardSelf self, const Context& context,
                                 const PublishOrder& order) {
  if (const auto failure = refuse(self->state, context, order.version))
    return to_error(*failure);
  auto shard = self->state.shard;
  return on_device<PublishDone>(self, context, "lend", [=] {
    if (!shard->worker->run.settings.run.check_moves)
      return PublishDone{};
    return PublishDone{shard->engine->checksum(
      moved_type(*shard, {shard->replica.id, order.target}))};
  });
}

/// Moves the version that the shard has to its server.
caf::result<MoveDone> update(ShardSelf self, const Context& context,
                             const MoveOrder& order) {
  if (const auto failure = refuse(self->state, context, order.version))
    return to_error(*failure);
  auto shard = self->state.shard;
  return on_device<MoveDone>(
    self, context,
    fmt::format("update of its server in step {}", step_number(context.step)),
    [=, step = context.step] {
      return update_server(*shard, step, order.version);
    });
}

/// Sends its part of the version that the shard has to the target's shards.
caf::result<MoveDone> send(ShardSelf self, const Context& context,
                           const MoveOrder& order) {
  if (const auto failure = refuse(self->state, context, order.version))
    return to_error(*failure);
  auto shard = self->state.shard;
  return on_device<MoveDone>(
    self, context, fmt::format("sending of step {}", step_number(context.step)),
    [=, step = context.step] { return send_shard(*shard, step, order); });
}

/// Runs a move. A target has no version until all its bytes have arrived
///. An EMA role is updated from its version before.
caf::result<MoveDone> move(ShardSelf self, const Context& context,
                           const MoveOrder& order) {
  auto shard = self->state.shard;
  if (order.source == order.target)
    return update(self, context, order);
  if (order.source == shard->replica.id)
    return send(self, context, order);
  const auto& ema = shard->worker->run.workflow.role(shard->replica.role).ema;
  if (ema)
    if (const auto failure = refuse(self->state, context,
                                    Version{order.version.value - ema->every}))
      return to_error(*failure);
  self->state.loaded = false;
  return on_device<MoveDone>(
    self, context, fmt::format("move of step {}", step_number(context.step)),
    [=, step = context.step] { return move_shard(*shard, step, order); },
    [=](MoveDone&) {
      self->state.loaded = true;
      self->state.version = order.version;
    });
}

caf::result<ResidencyDone> change_residency(ShardSelf self,
                                            const Context& context,
                                            const ResidencyOrder& order) {
  if (const auto failure = refuse(self->state, context, order.version))
    return to_error(*failure);
  if (order.kind == plans::TaskKind::drop)
    self->state.loaded = false;
  auto shard = self->state.shard;
  return on_device<ResidencyDone>(
    self, context,
    fmt::format("planes of {} in step {}", order.call,
                step_number(context.step)),
    [=, step = context.step] { return move_planes(*shard, step, order); });
}

caf::result<CopyDone> copy(ShardSelf self, const Context& context,
                           const CopyOrder& order) {
  auto shard = self->state.shard;
  return on_device<CopyDone>(
    self, context, "copy for checkpoint",
    [=, step = context.step] { return copy_shard(*shard, step, order); });
}

caf::result<SnapshotDone> snapshot(ShardSelf self, const Context& context,
                                   const SnapshotOrder& order) {
  auto shard = self->state.shard;
  return on_thread<SnapshotDone>(
    self, snapshot_thread(*shard), context, "snapshot",
    [=, step = context.step] { return snapshot_shard(*shard, step, order); });
}

/// Writes in the background: the device continues with the next step meanwhile.
caf::result<WriteDone> write(ShardSelf self, const Context& context,
                             const WriteOrder& order) {
  auto shard = self->state.shard;
  return on_thread<WriteDone>(
    self, *shard->worker->threads.writer, context, "write checkpoint",
    [=, step = context.step] { return write_shard(*shard, step, order); });
}

std::shared_ptr<Shard> make_shard(const ShardSetup& setup) {
  auto shard = std::make_shared<Shard>();
  shard->worker = setup.worker;
  shard->replica = setup.worker->run.replicas[setup.replica];
  shard->rank = setup.rank;
  shard->device = setup.worker->threads.devices.at(setup.rank).get();
  const auto& devices = shard->replica.devices;
  const auto index = std::ranges::find(devices, setup.rank) - devices.begin();
  shard->where
    = coordinate_of(shard->replica.strategy, static_cast<std::uint32_t>(index));
  return shard;
}

} // namespace

ShardActor::behavior_type shard_actor(ShardSelf self, ShardSetup setup) {
  self->state.shard = make_shard(setup);
  self->state.name = fmt::format(
    "shard {}/{}", self->state.shard->replica.name(), setup.rank.value);
  return {
    [=](load_atom, const Context& context, const LoadOrder& order) {
      return load(self, context, order);
    },
    [=](fetch_atom, const Context& context, const FetchOrder& order) {
      return fetch_rows(self, self->state.shard->worker, context, order);
    },
    [=](run_atom, const Context& context, const RunOrder& order) {
      return run(self, context, order);
    },
    [=](publish_weights_atom, const Context& context,
        const PublishOrder& order) { return publish(self, context, order); },
    [=](move_atom, const Context& context, const MoveOrder& order) {
      return move(self, context, order);
    },
    [=](residency_atom, const Context& context, const ResidencyOrder& order) {
      return change_residency(self, context, order);
    },
    [=](copy_atom, const Context& context, const CopyOrder& order) {
      return copy(self, context, order);
    },
    [=](write_atom, const Context& context, const WriteOrder& order) {
      return write(self, context, order);
    },
    [=](snapshot_atom, const Context& context, const SnapshotOrder& order) {
      return snapshot(self, context, order);
    },
    [=](done_atom, std::uint64_t id) { self->state.open.finish(id); },
  };
}

} // namespace troupe::actors
