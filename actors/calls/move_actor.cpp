#include "actors/calls/move_actor.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

using MoveSelf = Self<MoveActor, MoveState>;

struct RunningMove {
  Context context;
  MoveTask task;
  std::vector<PublishDone> published;
  Reply<MoveDone> reply;
};

std::function<std::string(const LocalMesh&)>
names_of(const MoveSetup& setup, const Context& context, const char* what) {
  return [=, &setup](const LocalMesh& local_mesh) {
    return fmt::format("{} of move {} in step {} on {}", what, setup.name,
                       step_number(context.step), local_mesh.name);
  };
}

/// Returns the checksums of the dp ranks on one side, or of runs of dp ranks
/// that have all weights between them: those of a replica's
/// parts add up, whatever the parts are.
template <class Done>
std::vector<std::uint64_t>
checksums_of_dp_ranks(const Strategy& strategy,
                      const std::vector<Done>& parts) {
  const auto run
    = strategy.zero == Zero::z3 ? strategy.dp : strategy.expert_group_dp();
  std::vector<std::uint64_t> sums(strategy.dp / run);
  for (std::uint32_t i = 0; i < parts.size(); ++i)
    sums[coordinate_of(strategy, i).dp / run] += parts[i].checksum;
  return sums;
}

bool checksums_agree(const MoveSetup& setup, const RunningMove& running,
                     const std::vector<MoveDone>& done) {
  const auto published
    = checksums_of_dp_ranks(setup.source_strategy, running.published).front();
  return std::ranges::all_of(checksums_of_dp_ranks(setup.target_strategy, done),
                             [&](auto sum) { return sum == published; });
}

void finish(MoveSelf self, const std::shared_ptr<RunningMove>& running,
            const std::vector<MoveDone>& done) {
  const MoveSetup& setup = self->state.setup;
  if (setup.check && !checksums_agree(setup, *running, done))
    return running->reply.fail(
      {.code = Errc::bug,
       .who = self->state.name,
       .what = "the weights that arrived differ from those that were sent",
       .cause = ""});
  MoveDone total = done.front();
  for (std::size_t i = 1; i < done.size(); ++i) {
    total.bytes += done[i].bytes;
    total.wire_bytes += done[i].wire_bytes;
    total.busy_ns = std::max(total.busy_ns, done[i].busy_ns);
    total.begin_ns = std::min(total.begin_ns, done[i].begin_ns);
    total.peaks.insert(total.peaks.end(), done[i].peaks.begin(),
                       done[i].peaks.end());
  }
  running->reply.deliver(std::move(total));
}

void move_targets(MoveSelf self, const std::shared_ptr<RunningMove>& running) {
  const MoveSetup& setup = self->state.setup;
  const MoveOrder order{running->task.task, setup.source, setup.target,
                        running->task.version};
  auto devices = setup.targets;
  devices.insert(devices.end(), setup.senders.begin(), setup.senders.end());
  ask_local_meshes<MoveDone>(
    self, devices, move_atom::value, running->context,
    MeshOrder<MoveOrder>{{order}, setup.order_of},
    names_of(setup, running->context, "receive"),
    [self, running](std::vector<MoveDone> done) {
      done.resize(self->state.setup.target_strategy.num_devices());
      finish(self, running, done);
    },
    [running](Failure failure) { running->reply.fail(failure); });
}

caf::result<MoveDone> run_move(MoveSelf self, const Context& context,
                               const MoveTask& task) {
  const MoveSetup& setup = self->state.setup;
  auto running = std::make_shared<RunningMove>();
  running->context = context;
  running->task = task;
  running->reply = Reply<MoveDone>{self, context};
  const PublishOrder order{task.task, task.version, setup.target};
  ask_local_meshes<PublishDone>(
    self, setup.sources, publish_weights_atom::value, context,
    MeshOrder<PublishOrder>{{order}}, names_of(setup, context, "lend"),
    [self, running](std::vector<PublishDone> published) {
      running->published = std::move(published);
      move_targets(self, running);
    },
    [running](Failure failure) { running->reply.fail(failure); });
  return running->reply.promise();
}

} // namespace

MoveActor::behavior_type move_actor(MoveSelf self, MoveSetup setup) {
  self->state.name = "move " + setup.name;
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  return {
    [=](run_atom, const Context& context, const MoveTask& task) {
      return run_move(self, context, task);
    },
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

} // namespace troupe::actors
