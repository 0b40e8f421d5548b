#include "actors/heartbeat_actor.hpp"

#include "actors/trace_actor.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using HeartbeatSelf = Self<HeartbeatActor, HeartbeatState>;

void lose(HeartbeatSelf self, std::uint32_t worker, Heart& heart,
          const std::string& what) {
  heart.pulse = Pulse::lost;
  self->state.setup.on_lost(
    WorkerId{worker},
    {.code = Errc::peer_lost, .who = heart.name, .what = what, .cause = ""});
}

/// Nobody asks them any more.
void forget_the_lost(HeartbeatSelf self) {
  std::erase_if(self->state.hearts, [](const auto& entry) {
    return entry.second.pulse == Pulse::lost;
  });
}

/// Tells what follows from its silence.
void judge(HeartbeatSelf self, std::uint32_t worker, Heart& heart) {
  const auto silence = self->clock().now() - heart.heard;
  const auto was = std::exchange(
    heart.pulse, pulse_after(silence, self->state.setup.silence_limit));
  if (heart.pulse == Pulse::lost)
    lose(self, worker, heart,
         fmt::format("no heartbeat for {:.0f} s",
                     std::chrono::duration<double>(silence).count()));
  else if (heart.pulse != was)
    self->state.setup.on_suspect(WorkerId{worker},
                                 heart.pulse == Pulse::suspect);
}

void heard(HeartbeatSelf self, std::uint32_t worker, const Pong& pong) {
  const auto found = self->state.hearts.find(worker);
  if (found == self->state.hearts.end())
    return; // too late
  found->second.heard = self->clock().now();
  judge(self, worker, found->second);
  for (const auto& listener : self->state.listeners)
    self->send(listener, ping_atom::value, worker, pong);
}

void tick(HeartbeatSelf self) {
  auto& state = self->state;
  if (state.ending)
    return;
  const auto now = self->clock().now();
  // after a stop of this process (SIGSTOP, a suspended host), what the others
  // have to say comes first: it knows more than a deadline
  if (now - std::exchange(state.last_tick, now) < defaults::suspect_after)
    state.setup.asks->expire(now);
  else
    for (auto& [worker, heart] : state.hearts)
      heart.heard = now;
  for (auto& [worker, heart] : state.hearts)
    judge(self, worker, heart);
  forget_the_lost(self);
  for (const auto& [worker, heart] : state.hearts)
    ask<Pong>(
      self, heart.node, ping_atom::value, Context{}, PingOrder{},
      {.name = fmt::format("heartbeat of worker {}", worker),
       .worker = WorkerId{worker},
       .is_work = false},
      [self, number = worker](const Pong& pong) { heard(self, number, pong); },
      [](const Failure&) {}); // silence tells, or the connection's end
  self->delayed_send(self, defaults::heartbeat_period, tick_atom::value);
}

void watch(HeartbeatSelf self, std::uint32_t worker, const std::string& name,
           const NodeActor& node) {
  self->monitor(node);
  self->state.hearts[worker] = {name, node, self->clock().now()};
}

void closed(HeartbeatSelf self, const caf::actor_addr& node) {
  auto& state = self->state;
  for (auto& [worker, heart] : state.hearts) {
    if (heart.node.address() != node)
      continue;
    if (state.ending)
      heart.pulse = Pulse::lost; // as it should be: nobody hears of it
    else
      lose(self, worker, heart, "the process ended or its connection closed");
  }
  forget_the_lost(self);
  if (state.ending && state.hearts.empty())
    self->quit();
}

void stop(HeartbeatSelf self) {
  auto& state = self->state;
  state.ending = true;
  for (const auto& [worker, heart] : state.hearts)
    self->send(heart.node, stop_atom::value);
  if (state.hearts.empty())
    self->quit();
}

} // namespace

Pulse pulse_after(AskTable::Clock::duration silence,
                  AskTable::Clock::duration limit) {
  using Periods = std::chrono::duration<
    std::int64_t,
    std::ratio<defaults::heartbeat_period.count(), std::milli::den>>;
  const auto periods = std::chrono::round<Periods>(silence);
  if (periods >= limit)
    return Pulse::lost;
  return periods >= defaults::suspect_after ? Pulse::suspect : Pulse::steady;
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
    [=](ping_atom, const PongListener& listener) {
      self->state.listeners.push_back(listener);
    },
    [=](stop_atom) { stop(self); },
    [=](tick_atom) { tick(self); },
    [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
      self->state.asks.fail(id, to_failure(trouble));
    },
  };
}

} // namespace troupe::actors
