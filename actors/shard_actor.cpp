#include "actors/shard_actor.hpp"

#include "actors/shard_generate.hpp"
#include "actors/shard_work.hpp"
#include "plans/step_graph.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using ShardSelf = Self<ShardActor, ShardState>;

/// What is wrong with an order for this shard, if anything (I4).
std::optional<Failure> refuse(const ShardState& state, const Context& context,
                              Version wanted) {
  Failure failure{
    .code = Errc::stale, .who = state.name, .what = "", .cause = ""};
  if (context.incarnation != state.shard->worker->incarnation) {
    failure.what = "an order of an older incarnation";
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

/// Queues `work` on the thread and answers with what it returns.
template <class Done, class Work>
caf::result<Done> on_thread(ShardSelf self, DeviceThread& thread,
                            const Context& context, std::string what, Work work,
                            std::function<void(Done&)> on_value = {}) {
  Answer<Done> answer{self, context};
  const auto& shard = self->state.shard;
  auto callback = self->state.open.open(self, answer, std::move(on_value));
  run_job<Done>(
    thread,
    fmt::format("{}, {}, {}", shard->worker->who, self->state.name, what),
    std::move(callback), std::move(work));
  return answer.promise();
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
    self, context, "load", [=] { return load_shard(*shard, order); },
    [=](LoadDone&) {
      self->state.loaded = !order.shape_only;
      self->state.version = order.version;
    });
}

/// Begins with the last of the chunks that it shares a batch with.
caf::result<RunDone> generate(ShardSelf self, const Context& context,
                              const RunOrder& order) {
  Answer<RunDone> answer{self, context};
  auto& state = self->state;
  auto chunks = state.chunks.put(context.step,
                                 {order, state.inbox.take(context.step, order),
                                  state.open.open(self, answer)});
  if (!chunks.empty())
    state.shard->device->post(
      [shard = state.shard, step = context.step,
       who = fmt::format("{}, {}, {} of step {}", state.shard->worker->who,
                         state.name, order.call, step_number(context.step)),
       chunks = std::move(chunks)] {
        generate_chunks(*shard, step, who, chunks);
      });
  return answer.promise();
}

caf::result<RunDone> run(ShardSelf self, const Context& context,
                         const RunOrder& order) {
  if (const auto failure = refuse(self->state, context, order.version))
    return to_error(*failure);
  auto shard = self->state.shard;
  const auto kind = shard->worker->workflow.call(order.call).kind;
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

caf::result<LendDone> lend(ShardSelf self, const Context& context,
                           const LendOrder& order) {
  if (const auto failure = refuse(self->state, context, order.version))
    return to_error(*failure);
  auto shard = self->state.shard;
  return on_device<LendDone>(self, context, "lend", [=] {
    return LendDone{
      shard->worker->settings.run.check_moves ? shard->engine->checksum() : 0};
  });
}

/// A target has no version until all its bytes arrived (DESIGN 5). A follower
/// blends into the version before.
caf::result<MoveDone> move(ShardSelf self, const Context& context,
                           const MoveOrder& order) {
  auto shard = self->state.shard;
  const auto& follows
    = shard->worker->workflow.role(shard->replica.role).follows;
  if (follows)
    if (const auto failure = refuse(
          self->state, context, Version{order.version.value - follows->every}))
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

caf::result<LifeDone> live(ShardSelf self, const Context& context,
                           const LifeOrder& order) {
  if (const auto failure = refuse(self->state, context, order.version))
    return to_error(*failure);
  const auto kind = static_cast<plans::TaskKind>(order.kind);
  if (kind == plans::TaskKind::drop)
    self->state.loaded = false;
  auto shard = self->state.shard;
  return on_device<LifeDone>(
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

/// Behind the device's back: it goes on with the next step meanwhile.
caf::result<WriteDone> write(ShardSelf self, const Context& context,
                             const WriteOrder& order) {
  auto shard = self->state.shard;
  return on_thread<WriteDone>(
    self, *shard->worker->writer, context, "write checkpoint",
    [=, step = context.step] { return write_shard(*shard, step, order); });
}

std::shared_ptr<Shard> make_shard(const ShardSetup& setup) {
  auto shard = std::make_shared<Shard>();
  shard->worker = setup.worker;
  shard->replica = setup.worker->replicas[setup.replica];
  shard->rank = setup.rank;
  shard->device = setup.worker->devices.at(setup.rank).get();
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
    [=](lend_atom, const Context& context, const LendOrder& order) {
      return lend(self, context, order);
    },
    [=](move_atom, const Context& context, const MoveOrder& order) {
      return move(self, context, order);
    },
    [=](life_atom, const Context& context, const LifeOrder& order) {
      return live(self, context, order);
    },
    [=](copy_atom, const Context& context, const CopyOrder& order) {
      return copy(self, context, order);
    },
    [=](write_atom, const Context& context, const WriteOrder& order) {
      return write(self, context, order);
    },
    [=](done_atom, std::uint64_t id) { self->state.open.finish(id); },
  };
}

} // namespace troupe::actors
