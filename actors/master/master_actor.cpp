#include "actors/master/master_actor.hpp"

#include "actors/master/master_work.hpp"
#include "config/base/defaults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::actors {

namespace {

// -- stalls ------------------------------------------------------------------

/// Returns the pending waits, oldest first, without heartbeats that were just
/// sent.
std::vector<std::string> wait_texts(const MasterState& state) {
  std::vector<std::string> texts;
  for (const auto& wait : state.setup.asks->waits(Clock::now()))
    if (wait.waited > defaults::heartbeat_period)
      texts.push_back(fmt::format("{} waits for {:.1f} s", wait.name,
                                  Seconds{wait.waited}.count()));
  for (const auto& [worker, what] : state.stalls.reading)
    texts.push_back(fmt::format("worker {} {}", worker, what));
  if (state.schedule)
    for (const auto& wait : state.schedule->waits())
      texts.push_back(state.schedule->describe(wait));
  return texts;
}

/// Reports every wait when nothing progresses, and gives up at the deadline
/// (I7).
void watch_progress(MasterSelf self) {
  auto& state = self->state;
  const auto still = AwakeClock::now() - state.stalls.last_progress;
  if (state.tasks.running == 0 || still < defaults::stall_report_after) {
    state.stalls.shown = false;
    return;
  }
  if (!std::exchange(state.stalls.shown, true)
      && state.setup.callbacks.on_stall)
    state.setup.callbacks.on_stall(
      fmt::format("no progress for {:.0f} s:\n  {}", Seconds{still}.count(),
                  fmt::join(wait_texts(state), "\n  ")));
  if (still > state.setup.progress_deadline)
    fail_run(
      self,
      {.code = Errc::deadline,
       .who = "master",
       .what = fmt::format("no progress for {:.0f} s", Seconds{still}.count()),
       .cause = fmt::format("{}", fmt::join(wait_texts(state), "; "))});
}

/// Handles a heartbeat reply: has the worker made progress?
void heard(MasterSelf self, std::uint32_t worker, const HeartbeatReply& reply) {
  auto& state = self->state;
  if (state.evaluation.master)
    self->send(state.evaluation.master, ping_atom::value, worker, reply);
  std::uint64_t sum = 0;
  for (const auto progress : reply.progress)
    sum += progress;
  if (std::exchange(state.stalls.progress[worker], sum) != sum)
    state.stalls.last_progress = AwakeClock::now();
  if (reply.reading.empty())
    state.stalls.reading.erase(worker);
  else
    state.stalls.reading[worker] = reply.reading;
  state.progress.peak_memory_bytes
    = std::max(state.progress.peak_memory_bytes, reply.memory_bytes);
  if (!state.progress.ended)
    watch_progress(self);
}

// -- begin and end -----------------------------------------------------------

void start(MasterSelf self) {
  auto& state = self->state;
  const auto& setup = state.setup;
  state.progress.last_commit = Clock::now();
  state.stalls.last_progress = AwakeClock::now();
  state.idle.times = IdleTimes{state.progress.last_commit};
  if (evaluation_due(state, setup.start.first_step))
    state.evaluation.after = setup.start.first_step;
  else if (setup.start.first_step >= setup.end_step) // saves what was loaded
    return save(self, setup.start.first_step);
  state.schedule.emplace(setup.dataflow.graph, setup.start.first_step,
                         setup.end_step, setup.dataflow.durations_s);
  launch(self, state.schedule->start());
  evaluate_if_due(self);
}

/// Starts no further steps.
void stop_after_step(MasterSelf self) {
  auto& state = self->state;
  if (!state.schedule || state.progress.ended)
    return;
  const auto ready = state.schedule->stop_unrolling();
  state.progress.end_step = state.schedule->end();
  launch(self, ready);
}

} // namespace

MasterActor::behavior_type master_actor(MasterSelf self, MasterSetup setup) {
  self->state.name = setup.name;
  self->state.asks = Asks{setup.asks};
  self->state.progress.carried = setup.start.carried;
  self->state.save.ahead = plans::steps_ahead(setup.dataflow.graph);
  for (const auto& call : setup.start.in_flight)
    self->state.save
      .in_flight[{setup.dataflow.graph.index_of(call.task), call.step}]
      = call.done;
  self->state.progress.versions = setup.start.versions;
  self->state.progress.committed_end = setup.start.first_step;
  self->state.progress.end_step = setup.end_step;
  self->state.rows = RowTable{setup.rows.holder};
  self->state.setup = std::move(setup);
  return {
    [=](start_atom) { start(self); },
    [=](stop_atom) { stop_after_step(self); },
    [=](evaluated_atom, const FailureMessage& message) {
      evaluated(self, message);
    },
    [=](down_atom, const FailureMessage& message) {
      fail_run(self, to_failure(message));
    },
    [=](ping_atom, std::uint32_t worker, const HeartbeatReply& reply) {
      heard(self, worker, reply);
    },
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

} // namespace troupe::actors
