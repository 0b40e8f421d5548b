#include "actors/move_actor.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

using MoveSelf = Self<MoveActor, MoveState>;

struct RunningMove {
  Context context;
  MoveTask task;
  std::vector<LendDone> lent;
  Answer<MoveDone> answer;
};

std::vector<AskSpec> specs_of(const MoveSetup& setup, const Context& context,
                              const std::vector<Member>& members,
                              const char* what) {
  std::vector<AskSpec> specs;
  for (const auto& member : members)
    specs.push_back(
      {.name = fmt::format("{} of move {} in step {} on {}", what, setup.name,
                           step_number(context.step), member.name),
       .worker = member.worker});
  return specs;
}

std::vector<ShardActor> shards_of(const std::vector<Member>& members) {
  std::vector<ShardActor> shards;
  for (const auto& member : members)
    shards.push_back(member.shard);
  return shards;
}

/// Checksums of the model's copies on one side: those of a copy's parts add up,
/// whatever the parts are.
template <class Done>
std::vector<std::uint64_t> copies(const Strategy& strategy,
                                  const std::vector<Done>& parts) {
  std::vector<std::uint64_t> sums(strategy.zero == Zero::z3 ? 1 : strategy.dp);
  for (std::uint32_t i = 0; i < parts.size(); ++i)
    sums[coordinate_of(strategy, i).dp % sums.size()] += parts[i].checksum;
  return sums;
}

bool checksums_agree(const MoveSetup& setup, const RunningMove& running,
                     const std::vector<MoveDone>& done) {
  const auto lent = copies(setup.source_strategy, running.lent).front();
  return std::ranges::all_of(copies(setup.target_strategy, done),
                             [&](auto sum) { return sum == lent; });
}

void finish(MoveSelf self, const std::shared_ptr<RunningMove>& running,
            const std::vector<MoveDone>& done) {
  const MoveSetup& setup = self->state.setup;
  if (setup.check && !checksums_agree(setup, *running, done))
    return running->answer.fail(
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
  running->answer.deliver(std::move(total));
}

void move_targets(MoveSelf self, const std::shared_ptr<RunningMove>& running) {
  const MoveSetup& setup = self->state.setup;
  const MoveOrder order{running->task.task, setup.source,
                        running->task.version};
  ask_all<MoveDone>(
    self, shards_of(setup.targets), move_atom::value, running->context,
    std::vector(setup.targets.size(), order),
    specs_of(setup, running->context, setup.targets, "receive"),
    [self, running](const std::vector<MoveDone>& done) {
      finish(self, running, done);
    },
    [running](Failure failure) { running->answer.fail(failure); });
}

caf::result<MoveDone> run_move(MoveSelf self, const Context& context,
                               const MoveTask& task) {
  const MoveSetup& setup = self->state.setup;
  auto running = std::make_shared<RunningMove>();
  running->context = context;
  running->task = task;
  running->answer = Answer<MoveDone>{self, context};
  const LendOrder order{task.task, task.version};
  ask_all<LendDone>(
    self, shards_of(setup.sources), lend_atom::value, context,
    std::vector(setup.sources.size(), order),
    specs_of(setup, context, setup.sources, "lend"),
    [self, running](std::vector<LendDone> lent) {
      running->lent = std::move(lent);
      move_targets(self, running);
    },
    [running](Failure failure) { running->answer.fail(failure); });
  return running->answer.promise();
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
    [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
      self->state.asks.fail(id, to_failure(trouble));
    },
  };
}

} // namespace troupe::actors
