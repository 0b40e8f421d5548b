#include "actors/calls/call_actor.hpp"

#include "actors/calls/function_split.hpp"
#include "actors/calls/row_table.hpp"
#include "plans/workflow/call_split.hpp"
#include "plans/workflow/context_share.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

using CallSelf = Self<CallActor, CallState>;

/// One running task of a call, or of a chunk of it; owned by the continuations.
struct RunningCall {
  Context context;
  CallTask task;
  std::vector<plans::Share> shares; ///< samples of each that takes part
  /// Calls with weights: the share of each device of the mesh.
  std::vector<std::uint32_t> share_of;
  /// Functions: the worker of each share, as index into CallSetup::members.
  std::vector<std::size_t> members;
  std::vector<bool> reads; ///< whether a share has rows to fetch
  std::uint64_t fetched_bytes = 0;
  AskTable::Clock::time_point started = AskTable::Clock::now();
  std::uint64_t fetch_ns = 0;
  Reply<CallDone> reply;
};

std::uint64_t nanoseconds_since(AskTable::Clock::time_point time) {
  const std::chrono::nanoseconds passed = AskTable::Clock::now() - time;
  return static_cast<std::uint64_t>(passed.count());
}

std::string name_of_ask(const CallSetup& setup, const RunningCall& running,
                        const char* what, const std::string& where) {
  return fmt::format("{} of {} in step {} on {}", what, setup.call.name,
                     step_number(running.context.step), where);
}

std::vector<SampleId> samples_of(const plans::Share& share) {
  std::vector<SampleId> samples;
  for (const auto& batch : share)
    samples.insert(samples.end(), batch.begin(), batch.end());
  std::ranges::sort(samples);
  return samples;
}

/// Replaces each holder by the member that stands for it (CallSetup::homes).
std::vector<RowSource> sources_at_homes(const CallSetup& setup,
                                        std::vector<RowSource> sources) {
  for (auto& source : sources)
    if (source.holder < setup.homes.size())
      source.holder = setup.homes[source.holder].value;
  return sources;
}

/// Returns sources whose samples are numbers of the kept ones.
std::vector<RowSource> sources_by_place(const CallTask& task,
                                        std::vector<RowSource> sources) {
  for (auto& source : sources)
    for (auto& sample : source.samples)
      sample = SampleId{static_cast<std::uint32_t>(
        std::ranges::lower_bound(task.kept, sample) - task.kept.begin())};
  return sources;
}

/// Replaces numbers of kept samples by what they stand for.
void name_kept_samples(RunningCall& running) {
  for (auto& share : running.shares)
    for (auto& batch : share)
      for (auto& sample : batch)
        sample = running.task.kept.at(sample.value);
}

void plan_function_shares(const CallSetup& setup, RunningCall& running) {
  const plans::SampleRange range{running.task.first, running.task.count};
  std::vector<WorkerId> workers;
  for (const auto& member : setup.members)
    workers.push_back(member.worker);
  auto sources = sources_at_homes(setup, running.task.sources);
  if (!running.task.kept.empty())
    sources = sources_by_place(running.task, std::move(sources));
  const auto shares = split_function(setup.call.scope, sources, workers, range,
                                     setup.samples_per_group);
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
  const auto together
    = plans::ranks_of_a_sample(setup.call.kind, setup.strategy);
  running.shares = plans::split_call(
    setup.call, setup.strategy.dp / together, running.task.tokens, range,
    setup.samples_per_group, setup.mini_batches);
  for (std::uint32_t i = 0; i < setup.strategy.num_devices(); ++i)
    // tp ranks, stages and the ranks of a cp group get the same samples
    running.share_of.push_back(coordinate_of(setup.strategy, i).dp / together);
}

/// Sends orders, one for each share, to the functions that have those of
/// `wanted`.
template <class Done, class Atom, class Order, class OnAll>
void ask_functions(CallSelf self, const std::shared_ptr<RunningCall>& running,
                   Atom atom, const std::vector<Order>& orders,
                   const std::vector<bool>& wanted, const char* what,
                   OnAll on_all) {
  const CallSetup& setup = self->state.setup;
  std::vector<FunctionActor> targets;
  std::vector<Order> sent;
  std::vector<AskSpec> specs;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    if (!wanted[i])
      continue;
    const Member& member = setup.members[running->members[i]];
    const auto where = fmt::format("worker {}", member.worker.value);
    targets.push_back(member.function);
    sent.push_back(orders[i]);
    specs.push_back({.name = name_of_ask(setup, *running, what, where),
                     .worker = member.worker});
  }
  ask_all<Done>(self, targets, atom, running->context, std::move(sent),
                std::move(specs), on_all,
                [running](Failure failure) { running->reply.fail(failure); });
}

/// Sends orders, one for each share, to those that have the shares of
/// `wanted`.
template <class Done, class Atom, class Order, class OnAll>
void ask_shares(CallSelf self, const std::shared_ptr<RunningCall>& running,
                Atom atom, std::vector<Order> orders,
                const std::vector<bool>& wanted, const char* what,
                OnAll on_all) {
  const CallSetup& setup = self->state.setup;
  if (setup.call.kind == plans::CallKind::function)
    return ask_functions<Done>(self, running, atom, orders, wanted, what,
                               on_all);
  MeshOrder<Order> mesh{.orders = std::move(orders)};
  for (const auto share : running->share_of)
    mesh.order_of.push_back(wanted[share] ? share : no_order);
  ask_local_meshes<Done>(
    self, setup.local_meshes, atom, running->context, mesh,
    [&](const LocalMesh& local_mesh) {
      return name_of_ask(setup, *running, what, local_mesh.name);
    },
    on_all, [running](Failure failure) { running->reply.fail(failure); });
}

void run_shares(CallSelf self, const std::shared_ptr<RunningCall>& running) {
  std::vector<RunOrder> orders;
  for (std::size_t i = 0; i < running->shares.size(); ++i)
    orders.push_back({.task = running->task.task,
                      .call = self->state.setup.call.name,
                      .version = running->task.version,
                      .batches = running->shares[i],
                      .epochs = self->state.setup.epochs,
                      .carried = running->task.carried,
                      .has_rows = running->reads[i],
                      .slice = running->task.slice,
                      .joined = running->task.joined});
  const std::vector<bool> all(orders.size(), true);
  ask_shares<RunDone>(self, running, run_atom::value, std::move(orders), all,
                      "run", [running](std::vector<RunDone> parts) {
                        running->reply.deliver({std::move(parts),
                                                running->fetched_bytes,
                                                running->fetch_ns});
                      });
}

/// Fetches for those that read rows; the others have nothing to wait for.
void fetch_shares(CallSelf self, const std::shared_ptr<RunningCall>& running) {
  std::vector<std::vector<SampleId>> samples;
  for (const auto& share : running->shares)
    samples.push_back(samples_of(share));
  std::vector<FetchOrder> orders;
  for (auto& sources : narrow(running->task.sources, samples)) {
    running->reads.push_back(!sources.empty());
    orders.push_back({running->task.task, std::move(sources)});
  }
  ask_shares<FetchDone>(
    self, running, fetch_atom::value, std::move(orders), running->reads,
    "fetch", [self, running](const std::vector<FetchDone>& done) {
      for (const auto& part : done)
        running->fetched_bytes += part.bytes;
      running->fetch_ns = nanoseconds_since(running->started);
      run_shares(self, running);
    });
}

caf::result<CallDone> run_call(CallSelf self, const Context& context,
                               const CallTask& task) {
  auto running = std::make_shared<RunningCall>();
  running->context = context;
  running->task = task;
  running->reply = Reply<CallDone>{self, context};
  plan_shares(self->state.setup, *running);
  if (!task.kept.empty())
    name_kept_samples(*running);
  fetch_shares(self, running);
  return running->reply.promise();
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
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

} // namespace troupe::actors
