#include "actors/master_actor.hpp"

#include "actors/master_work.hpp"
#include "actors/open_work.hpp"
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

void set_suspect(MasterSelf self, std::uint32_t worker, bool suspect) {
  auto& state = self->state;
  if (std::exchange(state.hearings[worker].suspect, suspect) != suspect
      && state.setup.on_suspect)
    state.setup.on_suspect(WorkerId{worker}, suspect);
}

/// Silence counts in whole heartbeats: an answer takes a moment itself.
void suspect_the_silent(MasterSelf self, Clock::time_point now) {
  using Periods = std::chrono::duration<
    std::int64_t,
    std::ratio<defaults::heartbeat_period.count(), std::milli::den>>;
  const auto& hearings = self->state.hearings;
  for (std::uint32_t i = 0; i < hearings.size(); ++i)
    if (std::chrono::round<Periods>(now - hearings[i].heard)
        >= defaults::suspect_after)
      set_suspect(self, i, true);
}

void heard(MasterSelf self, std::uint32_t worker, const Pong& pong) {
  auto& state = self->state;
  state.hearings[worker].heard = Clock::now();
  set_suspect(self, worker, false);
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

/// First cause: which process, and which actor was busy with which call.
void worker_down(MasterSelf self, std::uint32_t worker, Failure failure) {
  failure.what += during_work(self->state.setup.asks->waits(Clock::now()),
                              WorkerId{worker});
  fail_run(self, failure);
}

void heartbeat_missing(MasterSelf self, std::uint32_t worker, Failure failure) {
  failure.who = self->state.setup.worker_names.at(worker);
  failure.what = "no heartbeat: " + failure.what;
  worker_down(self, worker, std::move(failure));
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
      [=](const Failure& failure) { heartbeat_missing(self, i, failure); });
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
  auto& state = self->state;
  if (state.ended)
    return;
  const auto now = Clock::now();
  // after a stop of this process (SIGSTOP, a suspended host), what the others
  // have to say comes first: it knows more than a deadline
  if (now - std::exchange(state.last_tick, now) < defaults::suspect_after) {
    state.setup.asks->expire(now);
    suspect_the_silent(self, now);
  }
  ping_all(self);
  watch_progress(self);
  self->delayed_send(self, defaults::heartbeat_period, tick_atom::value);
}

// -- begin and end -----------------------------------------------------------

void start(MasterSelf self) {
  auto& state = self->state;
  const auto& setup = state.setup;
  state.last_commit = state.last_progress = state.last_tick = Clock::now();
  state.hearings.assign(setup.nodes.size(), {.heard = state.last_tick});
  state.idle = IdleTimes{state.last_commit};
  tick(self);
  if (evaluation_due(state, setup.first_step))
    state.evaluating = setup.first_step;
  else if (setup.first_step >= setup.end_step) // to save what was loaded
    return save(self, setup.first_step);
  state.schedule.emplace(setup.graph, setup.first_step, setup.end_step,
                         setup.durations_s);
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

} // namespace

MasterActor::behavior_type master_actor(MasterSelf self, MasterSetup setup) {
  self->state.name = setup.name;
  self->state.asks = Asks{setup.asks};
  self->state.carried = setup.carried;
  self->state.ahead = plans::steps_ahead(setup.graph);
  for (const auto& call : setup.early)
    self->state.early[{setup.graph.index_of(call.task), call.step}] = call.done;
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
      worker_down(self, worker, to_failure(trouble));
    },
    [=](tick_atom) { tick(self); },
    [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
      self->state.asks.fail(id, to_failure(trouble));
    },
  };
}

} // namespace troupe::actors
