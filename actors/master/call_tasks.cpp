#include "actors/master/call_tasks.hpp"

#include "actors/master/carried_values.hpp"
#include "plans/schedule/joined_chunks.hpp"
#include "plans/workflow/call_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

bool in_rounds(MasterSelf self, plans::TaskRef task) {
  return call_of(self, task)->rows.rounds > 1;
}

/// Takes the samples that a round keeps; the last round fills up the batch.
void keep_samples(MasterSelf self, plans::TaskRef task, const CallDone& done) {
  auto& rows = self->state.rows;
  for (const auto& part : done.parts)
    rows.keep(task.step, part.samples);
  if (template_of(self, task).part.round + 1
      == call_of(self, task)->rows.rounds)
    rows.fill_up(task.step);
}

void call_done(MasterSelf self, plans::TaskRef task, Clock::time_point started,
               const CallDone& done) {
  auto& state = self->state;
  auto& report = state.progress.reports[task.step];
  for (const auto& part : done.parts) {
    state.rows.produced(task.step, part);
    for (const auto& carried : part.carried)
      report.carried[carried.name] = carried.value.number();
  }
  if (in_rounds(self, task) && plans::keeps_groups(*call_of(self, task)))
    keep_samples(self, task, done);
  if (state.save.ahead[task.task] > 0)
    state.save.in_flight[task] = done;
  if (call_of(self, task)->kind == plans::CallKind::generate
      && template_of(self, task).part.chunk == 0
      && template_of(self, task).part.round == 0
      && template_of(self, task).part.slice.index == 0)
    report.tokens.prompts = report.tokens.all;
  count_tokens(report, state.rows.trained_tokens(task.step));
  const auto& entry = template_of(self, task);
  auto finished = task_report(entry, started);
  if (!entry.role.empty()) // parts are in the order of coordinates
    finished.devices
      = state.setup.dataflow
          .replicas[state.setup.dataflow.replicas.of_call(entry.call)]
          .devices;
  add_call(report, std::move(finished), done);
  state.idle.times.end(
    report.tasks.back(),
    std::chrono::nanoseconds{static_cast<std::int64_t>(done.fetch_ns)},
    report.idle);
  finish(self, task);
}

void end_call(MasterSelf self, plans::TaskRef task) {
  const auto sent = self->state.tasks.sent_calls.extract(task).mapped();
  call_done(self, task, *sent.started, *sent.done);
}

/// Stores a result. A task that is done before its turn counts as not running
/// until then.
void answered(MasterSelf self, plans::TaskRef task, const CallDone& done) {
  auto& sent = self->state.tasks.sent_calls.at(task);
  sent.done = done;
  if (sent.started)
    return end_call(self, task);
  --self->state.tasks.running;
  evaluate_if_due(self);
}

/// Returns the samples of a task; those of a call without rounds count the kept
/// ones where the step has rounds.
plans::SampleRange range_of(MasterSelf self, plans::TaskRef task) {
  const auto& state = self->state;
  const auto& entry = template_of(self, task);
  const auto count = state.rows.num_samples(task.step);
  if (in_rounds(self, task))
    return {SampleId{entry.part.round * count}, count};
  return plans::chunk_range(count, state.setup.rows.samples_per_row,
                            entry.part.chunk, entry.part.chunks);
}

void ask_call(MasterSelf self, plans::TaskRef task, const JoinedTasks& joined) {
  auto& state = self->state;
  ++state.tasks.running;
  state.tasks.sent_calls[task] = {};
  const auto& entry = template_of(self, task);
  const auto call = plans::slice_of(*call_of(self, task), entry.part.slice);
  const auto range = range_of(self, task);
  const auto kept = in_rounds(self, task) ? std::vector<SampleId>{}
                                          : state.rows.kept(task.step);
  const CallTask order{
    .task = task.task,
    .version = version_of(state.setup, task),
    .first = range.first,
    .count = range.count,
    .kept = kept,
    .sources = state.rows.sources(task.step, call.reads, range, !kept.empty()),
    .tokens = kept.empty() ? state.rows.tokens(task.step)
                           : state.rows.trained_tokens(task.step),
    .carried = carried_list(carried_at(state, task.step)),
    .slice = entry.part.slice,
    .joined = joined};
  ask<CallDone>(
    self, state.setup.actors.calls.at(call.name), run_atom::value,
    context_for(self, task.step), order,
    {.name = fmt::format("{} of step {}", entry.name, step_number(task.step))},
    [=](const CallDone& done) { answered(self, task, done); },
    [=](const Failure& failure) { fail_run(self, failure); });
}

/// Returns the task and those that run in one batch with it, without those
/// whose results came from a checkpoint.
std::vector<plans::TaskRef> batch_of(MasterSelf self, plans::TaskRef task) {
  const auto& state = self->state;
  auto batch
    = plans::joined_chunks(state.setup.dataflow.graph, *call_of(self, task),
                           task, state.schedule->followers(task));
  const auto known = std::ranges::find_if(batch, [&](plans::TaskRef one) {
    return state.save.in_flight.contains(one);
  });
  batch.erase(known, batch.end());
  return batch;
}

} // namespace

bool is_needless(MasterSelf self, plans::TaskRef task) {
  return template_of(self, task).part.round > 0
         && self->state.rows.is_full(task.step);
}

void pass_over(MasterSelf self, plans::TaskRef task) {
  self->state.tasks.waited.erase(task);
  ++self->state.tasks.running;
  finish(self, task);
}

void send_call(MasterSelf self, plans::TaskRef task) {
  auto& state = self->state;
  const auto started = Clock::now();
  if (const auto in_flight = state.save.in_flight.find(task);
      in_flight != state.save.in_flight.end()) {
    ++state.tasks.running;
    return call_done(self, task, started, CallDone{in_flight->second});
  }
  if (!state.tasks.sent_calls.contains(task)) {
    const auto batch = batch_of(self, task);
    JoinedTasks joined{.step = task.step, .tasks = {}};
    for (const auto one : batch)
      joined.tasks.push_back(one.task);
    for (const auto one : batch)
      ask_call(self, one, joined);
  }
  auto& sent = state.tasks.sent_calls.at(task);
  sent.started = started;
  if (!sent.done)
    return;
  ++state.tasks.running;
  end_call(self, task);
}

} // namespace troupe::actors
