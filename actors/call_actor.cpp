#include "actors/call_actor.hpp"

#include "actors/function_split.hpp"
#include "actors/row_table.hpp"
#include "plans/call_split.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

using CallSelf = Self<CallActor, CallState>;

/// One running task of a call, or of a chunk of it; lives in the continuations.
struct RunningCall {
  Context context;
  CallTask task;
  std::vector<std::size_t> members; ///< indices into CallSetup::members
  std::vector<plans::Share> shares; ///< what each of them does
  std::vector<FetchOrder> fetches;  ///< what each of them reads
  std::uint64_t fetched_bytes = 0;
  AskTable::Clock::time_point started = AskTable::Clock::now();
  std::uint64_t fetch_ns = 0;
  Answer<CallDone> answer;
};

std::uint64_t nanoseconds_since(AskTable::Clock::time_point time) {
  const std::chrono::nanoseconds passed = AskTable::Clock::now() - time;
  return static_cast<std::uint64_t>(passed.count());
}

AskSpec spec_of(const CallSetup& setup, const RunningCall& running,
                std::size_t member, const char* what) {
  const Member& peer = setup.members[member];
  return {.name
          = fmt::format("{} of {} in step {} on {}", what, setup.call.name,
                        step_number(running.context.step), peer.name),
          .worker = peer.worker};
}

std::vector<SampleId> samples_of(const plans::Share& share) {
  std::vector<SampleId> samples;
  for (const auto& batch : share)
    samples.insert(samples.end(), batch.begin(), batch.end());
  std::ranges::sort(samples);
  return samples;
}

/// As if each member held what the workers around it hold.
std::vector<RowSource> sources_at_homes(const CallSetup& setup,
                                        std::vector<RowSource> sources) {
  for (auto& source : sources)
    if (source.holder < setup.homes.size())
      source.holder = setup.homes[source.holder].value;
  return sources;
}

void plan_function_shares(const CallSetup& setup, RunningCall& running) {
  const plans::SampleRange range{running.task.first, running.task.count};
  std::vector<WorkerId> workers;
  for (const auto& member : setup.members)
    workers.push_back(member.worker);
  const auto shares = split_function(
    setup.call.scope, sources_at_homes(setup, running.task.sources), workers,
    range, setup.samples_per_group);
  for (const auto& share : shares) {
    running.members.push_back(share.member);
    running.shares.push_back({share.samples});
  }
}

void plan_shares(const CallSetup& setup, RunningCall& running) {
  const plans::SampleRange range{running.task.first, running.task.count};
  if (setup.call.kind == plans::CallKind::function) {
    return plan_function_shares(setup, running);
  }
  const auto by_dp
    = plans::split_call(setup.call, setup.strategy.dp, running.task.tokens,
                        range, setup.samples_per_group, setup.mini_batches);
  for (std::uint32_t i = 0; i < setup.members.size(); ++i) {
    running.members.push_back(i);
    // Tensor peers and stages get the same samples.
    running.shares.push_back(by_dp[coordinate_of(setup.strategy, i).dp]);
  }
}

/// Asks some members of the running call; shards and functions differ in
/// their handle only.
template <class Done, class Atom, class Order, class OnAll>
void ask_members(CallSelf self, const std::shared_ptr<RunningCall>& running,
                 const std::vector<std::size_t>& members, Atom atom,
                 std::vector<Order> orders, const char* what, OnAll on_all) {
  const CallSetup& setup = self->state.setup;
  std::vector<AskSpec> specs;
  for (const auto member : members)
    specs.push_back(spec_of(setup, *running, member, what));
  auto on_failure
    = [running](Failure failure) { running->answer.fail(failure); };
  if (setup.call.kind == plans::CallKind::function) {
    std::vector<FunctionActor> targets;
    for (const auto member : members)
      targets.push_back(setup.members[member].function);
    return ask_all<Done>(self, targets, atom, running->context,
                         std::move(orders), std::move(specs), on_all,
                         on_failure);
  }
  std::vector<ShardActor> targets;
  for (const auto member : members)
    targets.push_back(setup.members[member].shard);
  ask_all<Done>(self, targets, atom, running->context, std::move(orders),
                std::move(specs), on_all, on_failure);
}

void run_members(CallSelf self, const std::shared_ptr<RunningCall>& running) {
  std::vector<RunOrder> orders;
  for (std::size_t i = 0; i < running->shares.size(); ++i)
    orders.push_back({.task = running->task.task,
                      .call = self->state.setup.call.name,
                      .version = running->task.version,
                      .batches = running->shares[i],
                      .epochs = self->state.setup.epochs,
                      .carried = running->task.carried,
                      .has_rows = !running->fetches[i].sources.empty(),
                      .joined = running->task.joined});
  ask_members<RunDone>(
    self, running, running->members, run_atom::value, std::move(orders), "run",
    [running](std::vector<RunDone> parts) {
      running->answer.deliver(
        {std::move(parts), running->fetched_bytes, running->fetch_ns});
    });
}

/// Who reads nothing has nothing to wait for and is not asked.
void fetch_members(CallSelf self, const std::shared_ptr<RunningCall>& running) {
  std::vector<FetchOrder> orders;
  std::vector<std::size_t> readers;
  for (std::size_t i = 0; i < running->shares.size(); ++i) {
    const FetchOrder& order = running->fetches.emplace_back(
      FetchOrder{running->task.task, narrow(running->task.sources,
                                            samples_of(running->shares[i]))});
    if (order.sources.empty())
      continue;
    orders.push_back(order);
    readers.push_back(running->members[i]);
  }
  ask_members<FetchDone>(
    self, running, readers, fetch_atom::value, std::move(orders), "fetch",
    [self, running](const std::vector<FetchDone>& done) {
      for (const auto& part : done)
        running->fetched_bytes += part.bytes;
      running->fetch_ns = nanoseconds_since(running->started);
      run_members(self, running);
    });
}

caf::result<CallDone> run_call(CallSelf self, const Context& context,
                               const CallTask& task) {
  auto running = std::make_shared<RunningCall>();
  running->context = context;
  running->task = task;
  running->answer = Answer<CallDone>{self, context};
  plan_shares(self->state.setup, *running);
  fetch_members(self, running);
  return running->answer.promise();
}

} // namespace

CallActor::behavior_type call_actor(CallSelf self, CallSetup setup) {
  self->state.name = "call " + setup.call.name;
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  return {
    [=](run_atom, const Context& context, const CallTask& task) {
      return run_call(self, context, task);
    },
    [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
      self->state.asks.fail(id, to_failure(trouble));
    },
  };
}

} // namespace troupe::actors
