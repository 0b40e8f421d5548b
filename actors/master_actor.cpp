#include "actors/master_actor.hpp"

#include "actors/master_work.hpp"
#include "config/defaults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::actors {

namespace {

// -- stalls ------------------------------------------------------------------

/// Oldest first; a heartbeat that just went is no reason.
std::vector<std::string> wait_texts(const MasterState& state) {
  std::vector<std::string> texts;
  for (const auto& wait : state.setup.asks->waits(Clock::now()))
    if (wait.waited > defaults::heartbeat_period)
      texts.push_back(fmt::format("{} waits for {:.1f} s", wait.name,
                                  Seconds{wait.waited}.count()));
  for (const auto& [worker, what] : state.reading)
    texts.push_back(fmt::format("worker {} {}", worker, what));
  if (state.schedule)
    for (const auto& wait : state.schedule->waits())
      texts.push_back(state.schedule->describe(wait));
  return texts;
}

/// I7: names every wait when nothing moves, and gives up at the deadline.
void watch_progress(MasterSelf self) {
  auto& state = self->state;
  const auto still = AwakeClock::now() - state.last_progress;
  if (state.running == 0 || still < defaults::stall_report_after) {
    state.stall_shown = false;
    return;
  }
  if (!std::exchange(state.stall_shown, true) && state.setup.on_stall)
    state.setup.on_stall(fmt::format("no progress for {:.0f} s:\n  {}",
                                     Seconds{still}.count(),
                                     fmt::join(wait_texts(state), "\n  ")));
  if (still > state.setup.progress_deadline)
    fail_run(
      self,
      {.code = Errc::deadline,
       .who = "master",
       .what = fmt::format("no progress for {:.0f} s", Seconds{still}.count()),
       .cause = fmt::format("{}", fmt::join(wait_texts(state), "; "))});
}

/// A worker lives: does its work get on?
void heard(MasterSelf self, std::uint32_t worker, const Pong& pong) {
  auto& state = self->state;
  if (state.judge)
    self->send(state.judge, ping_atom::value, worker, pong);
  std::uint64_t sum = 0;
  for (const auto progress : pong.progress)
    sum += progress;
  if (std::exchange(state.progress[worker], sum) != sum)
    state.last_progress = AwakeClock::now();
  if (pong.reading.empty())
    state.reading.erase(worker);
  else
    state.reading[worker] = pong.reading;
  state.peak_memory_bytes
    = std::max(state.peak_memory_bytes, pong.memory_bytes);
  if (!state.ended)
    watch_progress(self);
}

// -- begin and end -----------------------------------------------------------

void start(MasterSelf self) {
  auto& state = self->state;
  const auto& setup = state.setup;
  state.last_commit = Clock::now();
  state.last_progress = AwakeClock::now();
  state.idle = IdleTimes{state.last_commit};
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
    [=](down_atom, const Trouble& trouble) {
      fail_run(self, to_failure(trouble));
    },
    [=](ping_atom, std::uint32_t worker, const Pong& pong) {
      heard(self, worker, pong);
    },
    [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
      self->state.asks.fail(id, to_failure(trouble));
    },
  };
}

} // namespace troupe::actors
