#include "actors/master_actor.hpp"

#include "actors/master_work.hpp"
#include "config/defaults.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

// -- heartbeats and stalls ---------------------------------------------------

std::string waits_text(const MasterState& state) {
  std::string text;
  for (const auto& wait : state.setup.asks->waits(Clock::now()))
    text += fmt::format("\n  {} waits for {:.1f} s", wait.name,
                        Seconds{wait.waited}.count());
  if (state.schedule)
    for (const auto& wait : state.schedule->waits())
      text += "\n  " + state.schedule->describe(wait);
  return text;
}

void heard(MasterSelf self, std::uint32_t worker, const Pong& pong) {
  auto& state = self->state;
  std::uint64_t sum = 0;
  for (const auto progress : pong.progress)
    sum += progress;
  if (sum != state.progress[worker])
    state.last_progress = Clock::now();
  state.progress[worker] = sum;
  state.peak_memory_bytes
    = std::max(state.peak_memory_bytes, pong.memory_bytes);
  if (state.setup.trace)
    self->send(state.setup.trace, ping_atom::value, worker, pong);
}

void ping_all(MasterSelf self) {
  const auto& nodes = self->state.setup.nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    ask<Pong>(
      self, nodes[i], ping_atom::value, context_for(self, StepId{}),
      PingOrder{},
      {.name = fmt::format("heartbeat of worker {}", i),
       .worker = WorkerId{i},
       .deadline = defaults::dead_after},
      [=](Pong& pong) { heard(self, i, pong); },
      [=](const Failure& failure) { fail_run(self, failure); });
}

/// I7: names every wait when nothing moves, and gives up at the deadline.
void watch_progress(MasterSelf self) {
  auto& state = self->state;
  const auto still = Clock::now() - state.last_progress;
  if (state.running == 0 || still < defaults::stall_report_after) {
    state.stall_shown = false;
    return;
  }
  if (!std::exchange(state.stall_shown, true) && state.setup.on_stall)
    state.setup.on_stall(fmt::format("no progress for {:.0f} s:{}",
                                     Seconds{still}.count(),
                                     waits_text(state)));
  if (still > defaults::progress_deadline)
    fail_run(self, {.code = Errc::deadline,
                    .who = "master",
                    .what = fmt::format("no progress for {:.0f} s",
                                        Seconds{still}.count()),
                    .cause = waits_text(state)});
}

void tick(MasterSelf self) {
  if (self->state.ended)
    return;
  self->state.setup.asks->expire(Clock::now());
  ping_all(self);
  watch_progress(self);
  self->delayed_send(self, defaults::heartbeat_period, tick_atom::value);
}

// -- begin and end -----------------------------------------------------------

void start(MasterSelf self) {
  auto& state = self->state;
  const auto& setup = state.setup;
  state.last_commit = state.last_progress = Clock::now();
  state.idle = IdleTimes{state.last_commit};
  tick(self);
  if (evaluation_due(state, setup.first_step))
    state.evaluating = setup.first_step;
  else if (setup.first_step >= setup.end_step) // to save what was loaded
    return save(self, setup.first_step);
  state.schedule.emplace(setup.graph, setup.first_step, setup.end_step);
  launch(self, state.schedule->start());
  evaluate_if_due(self);
}

/// Steps that have not begun do not begin any more.
void stop_after_step(MasterSelf self) {
  auto& state = self->state;
  if (!state.schedule || state.ended)
    return;
  const auto ready = state.schedule->stop_unrolling();
  state.end_step = state.schedule->end();
  launch(self, ready);
}

void worker_down(MasterSelf self, std::uint32_t worker,
                 const Trouble& trouble) {
  auto& state = self->state;
  if (state.ended)
    return;
  Failure failure = to_failure(trouble);
  const auto waits = state.setup.asks->waits(Clock::now());
  for (const auto& wait : waits)
    if (wait.worker == WorkerId{worker}
        && !wait.name.starts_with("heartbeat")) {
      failure.what += " during " + wait.name;
      break;
    }
  fail_run(self, failure);
}

} // namespace

MasterActor::behavior_type master_actor(MasterSelf self, MasterSetup setup) {
  self->state.name = setup.name;
  self->state.asks = Asks{setup.asks};
  self->state.carried = setup.carried;
  self->state.versions = setup.versions;
  self->state.committed_end = setup.first_step;
  self->state.end_step = setup.end_step;
  self->state.rows = RowTable{setup.data_holder};
  self->state.setup = std::move(setup);
  return {
    [=](start_atom) { start(self); },
    [=](stop_atom) { stop_after_step(self); },
    [=](judged_atom, const Trouble& trouble) { evaluated(self, trouble); },
    [=](down_atom, std::uint32_t worker, const Trouble& trouble) {
      worker_down(self, worker, trouble);
    },
    [=](tick_atom) { tick(self); },
    [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
      self->state.asks.fail(id, to_failure(trouble));
    },
  };
}

} // namespace troupe::actors
