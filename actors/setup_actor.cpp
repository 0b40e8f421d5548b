#include "actors/setup_actor.hpp"

#include "actors/open_work.hpp"
#include "config/defaults.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using SetupSelf = Self<SetupActor, SetupState>;

Context context_of_run(SetupSelf self) {
  return {
    .flow = 0, .step = StepId{}, .incarnation = self->state.setup.incarnation};
}

void report_ready(SetupSelf self, const std::vector<SetupDone>& ready) {
  if (!std::exchange(self->state.reported, true))
    self->state.setup.on_ready(ready);
}

void report_failure(SetupSelf self, const Failure& failure) {
  if (!std::exchange(self->state.reported, true))
    self->state.setup.on_failure(failure);
}

// -- heartbeats, as the master's later ---------------------------------------

void heartbeat_missing(SetupSelf self, std::uint32_t worker, Failure failure) {
  const auto& setup = self->state.setup;
  failure.who = setup.worker_names.at(worker);
  failure.what = "no heartbeat: " + failure.what
                 + during_work(setup.asks->waits(AskTable::Clock::now()),
                               WorkerId{worker});
  report_failure(self, failure);
}

void tick(SetupSelf self) {
  auto& state = self->state;
  if (state.reported)
    return;
  const auto now = AskTable::Clock::now();
  if (now - std::exchange(state.last_tick, now) < defaults::suspect_after)
    state.setup.asks->expire(now); // else this process was stopped itself
  const auto& nodes = state.setup.nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    ask<Pong>(
      self, nodes[i], ping_atom::value, context_of_run(self), PingOrder{},
      {.name = fmt::format("heartbeat of worker {}", i),
       .worker = WorkerId{i},
       .deadline = defaults::dead_after},
      [](const Pong&) {},
      [=](const Failure& failure) { heartbeat_missing(self, i, failure); });
  self->delayed_send(self, defaults::heartbeat_period, tick_atom::value);
}

// -- set-up, weights, rows ---------------------------------------------------

void load_rows(SetupSelf self, const std::vector<SetupDone>& ready) {
  const auto& setup = self->state.setup;
  std::vector<NodeActor> targets;
  std::vector<LoadRowsOrder> orders;
  std::vector<AskSpec> specs;
  for (std::uint32_t worker = 0; worker < setup.rows.size(); ++worker) {
    if (setup.rows[worker].files.empty())
      continue;
    targets.push_back(setup.nodes.at(worker));
    orders.push_back(setup.rows[worker]);
    specs.push_back({.name = fmt::format("load of rows on worker {}", worker),
                     .worker = WorkerId{worker},
                     .deadline = {}});
  }
  ask_all<LoadDone>(
    self, targets, load_atom::value, context_of_run(self), std::move(orders),
    std::move(specs),
    [=](const std::vector<LoadDone>&) { report_ready(self, ready); },
    [=](const Failure& failure) { report_failure(self, failure); });
}

void load_shards(SetupSelf self, const std::vector<SetupDone>& ready) {
  const auto& setup = self->state.setup;
  std::vector<ShardActor> targets;
  std::vector<LoadOrder> orders;
  std::vector<AskSpec> specs;
  for (std::uint32_t worker = 0; worker < ready.size(); ++worker)
    for (const auto& entry : ready[worker].shards) {
      targets.push_back(entry.shard);
      orders.push_back(setup.loads.at(entry.replica.value).order);
      specs.push_back(
        {.name = fmt::format("load of replica {} on device {}",
                             entry.replica.value, entry.rank.value),
         .worker = WorkerId{worker},
         .deadline = {}});
    }
  ask_all<LoadDone>(
    self, targets, load_atom::value, context_of_run(self), std::move(orders),
    std::move(specs),
    [=](const std::vector<LoadDone>&) { load_rows(self, ready); },
    [=](const Failure& failure) { report_failure(self, failure); });
}

void set_up(SetupSelf self) {
  const auto& setup = self->state.setup;
  self->state.last_tick = AskTable::Clock::now();
  tick(self);
  std::vector<AskSpec> specs;
  for (std::uint32_t i = 0; i < setup.nodes.size(); ++i)
    specs.push_back({.name = fmt::format("set-up of worker {}", i),
                     .worker = WorkerId{i},
                     .deadline = {}});
  ask_all<SetupDone>(
    self, setup.nodes, setup_atom::value, context_of_run(self),
    std::vector(setup.nodes.size(), SetupOrder{setup.peers}), std::move(specs),
    [=](const std::vector<SetupDone>& ready) { load_shards(self, ready); },
    [=](const Failure& failure) { report_failure(self, failure); });
}

} // namespace

SetupActor::behavior_type setup_actor(SetupSelf self, SetupSetup setup) {
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  return {
    [=](start_atom) { set_up(self); },
    [=](tick_atom) { tick(self); },
    [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
      self->state.asks.fail(id, to_failure(trouble));
    },
  };
}

} // namespace troupe::actors
