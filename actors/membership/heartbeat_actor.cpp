#include "actors/membership/heartbeat_actor.hpp"

#include "actors/membership/trace_actor.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using HeartbeatSelf = Self<HeartbeatActor, HeartbeatState>;

void lose(HeartbeatSelf self, std::uint32_t worker, WorkerHealth& health,
          const std::string& what) {
  health.liveness = WorkerLiveness::lost;
  self->state.setup.on_lost(
    WorkerId{worker},
    {.code = Errc::peer_lost, .who = health.name, .what = what, .cause = ""});
}

/// Stops pinging lost workers.
void forget_the_lost(HeartbeatSelf self) {
  std::erase_if(self->state.workers, [](const auto& entry) {
    return entry.second.liveness == WorkerLiveness::lost;
  });
}

/// Reports what follows from the worker's silence.
void update_liveness(HeartbeatSelf self, std::uint32_t worker,
                     WorkerHealth& health) {
  const auto silence = self->clock().now() - health.heard;
  const auto was = std::exchange(
    health.liveness, liveness_after(silence, self->state.setup.silence_limit));
  if (health.liveness == WorkerLiveness::lost)
    lose(self, worker, health,
         fmt::format("no heartbeat for {:.0f} s",
                     std::chrono::duration<double>(silence).count()));
  else if (health.liveness != was)
    self->state.setup.on_suspect(WorkerId{worker},
                                 health.liveness == WorkerLiveness::suspect);
}

void heard(HeartbeatSelf self, std::uint32_t worker,
           const HeartbeatReply& reply) {
  const auto found = self->state.workers.find(worker);
  if (found == self->state.workers.end())
    return; // too late
  found->second.heard = self->clock().now();
  update_liveness(self, worker, found->second);
  for (const auto& listener : self->state.listeners)
    self->send(listener, ping_atom::value, worker, reply);
}

void tick(HeartbeatSelf self) {
  auto& state = self->state;
  if (state.ending)
    return;
  const auto now = self->clock().now();
  // after a stop of this process (SIGSTOP, a suspended host), messages of other
  // processes come first: they are more specific than a deadline
  if (now - std::exchange(state.last_tick, now) < defaults::suspect_after)
    state.setup.asks->expire(now);
  else
    for (auto& [worker, health] : state.workers)
      health.heard = now;
  for (auto& [worker, health] : state.workers)
    update_liveness(self, worker, health);
  forget_the_lost(self);
  for (const auto& [worker, health] : state.workers)
    ask<HeartbeatReply>(
      self, health.node, ping_atom::value, Context{}, PingOrder{},
      {.name = fmt::format("heartbeat of worker {}", worker),
       .worker = WorkerId{worker},
       .is_work = false},
      [self, number = worker](const HeartbeatReply& reply) {
        heard(self, number, reply);
      },
      [](const Failure&) {}); // silence shows it, or the closed connection
  self->delayed_send(self, defaults::heartbeat_period, tick_atom::value);
}

void watch(HeartbeatSelf self, std::uint32_t worker, const std::string& name,
           const NodeActor& node) {
  self->monitor(node);
  self->state.workers[worker] = {name, node, self->clock().now()};
}

void closed(HeartbeatSelf self, const caf::actor_addr& node) {
  auto& state = self->state;
  for (auto& [worker, health] : state.workers) {
    if (health.node.address() != node)
      continue;
    if (state.ending)
      health.liveness = WorkerLiveness::lost; // expected end: not reported
    else
      lose(self, worker, health, "the process ended or its connection closed");
  }
  forget_the_lost(self);
  if (state.ending && state.workers.empty())
    self->quit();
}

void stop(HeartbeatSelf self) {
  auto& state = self->state;
  state.ending = true;
  for (const auto& [worker, health] : state.workers)
    self->send(health.node, stop_atom::value);
  if (state.workers.empty())
    self->quit();
}

} // namespace

WorkerLiveness liveness_after(AskTable::Clock::duration silence,
                              AskTable::Clock::duration limit) {
  using Periods = std::chrono::duration<
    std::int64_t,
    std::ratio<defaults::heartbeat_period.count(), std::milli::den>>;
  const auto periods = std::chrono::round<Periods>(silence);
  if (periods >= limit)
    return WorkerLiveness::lost;
  return periods >= defaults::suspect_after ? WorkerLiveness::suspect
                                            : WorkerLiveness::steady;
}

HeartbeatActor::behavior_type heartbeat_actor(HeartbeatSelf self,
                                              HeartbeatSetup setup) {
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  self->state.listeners = {self->spawn(trace_actor)};
  self->state.last_tick = self->clock().now();
  self->set_down_handler(
    [=](const caf::down_msg& down) { closed(self, down.source); });
  tick(self);
  return {
    [=](join_atom, std::uint32_t worker, const std::string& name,
        const NodeActor& node) { watch(self, worker, name, node); },
    [=](ping_atom, const HeartbeatListener& listener) {
      self->state.listeners.push_back(listener);
    },
    [=](stop_atom) { stop(self); },
    [=](tick_atom) { tick(self); },
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

} // namespace troupe::actors
