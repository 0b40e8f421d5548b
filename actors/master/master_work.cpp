#include "actors/master/master_work.hpp"

#include "actors/master/call_tasks.hpp"
#include "actors/master/carried_values.hpp"
#include "actors/master/weight_tasks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

const plans::TaskTemplate& template_of(MasterSelf self, plans::TaskRef task) {
  return self->state.setup.dataflow.graph.tasks.at(task.task);
}

const plans::Call* call_of(MasterSelf self, plans::TaskRef task) {
  const auto& entry = template_of(self, task);
  return entry.kind == plans::TaskKind::call
           ? &self->state.setup.dataflow.workflow.call(entry.call)
           : nullptr;
}

namespace {

/// Returns whether a checkpoint is written before `next_step`.
bool save_due(const MasterState& state, StepId next_step) {
  return !state.setup.save.replicas.empty()
         && (next_step == state.progress.end_step
             || (state.setup.save.every != 0
                 && next_step.value % state.setup.save.every == 0));
}

/// Returns whether the hosts' memory gets a snapshot before `next_step`.
bool snapshot_due(const MasterState& state, StepId next_step) {
  const auto every = state.setup.save.snapshot_every;
  return !state.setup.save.replicas.empty() && every != 0
         && next_step.value % every == 0;
}

/// Returns whether weights are copied before `next_step`.
bool copy_due(const MasterState& state, StepId next_step) {
  return save_due(state, next_step) || snapshot_due(state, next_step);
}

/// Returns whether the task would overwrite weights that the checkpoint before
/// `next_step` still has to copy.
bool overwrites(MasterSelf self, plans::TaskRef task, StepId next_step) {
  if (task.step < next_step)
    return false;
  const auto* call = call_of(self, task);
  if (call != nullptr)
    return call->kind == plans::CallKind::train;
  if (template_of(self, task).kind != plans::TaskKind::move)
    return false; // planes that are offloaded or reloaded keep their values
  const auto& saved = self->state.setup.save.replicas;
  return std::ranges::find(saved, *template_of(self, task).target,
                           &SavedReplica::replica)
         != saved.end();
}

bool held_back(MasterSelf self, plans::TaskRef task) {
  const auto& state = self->state;
  if (state.evaluation.after)
    return true;
  if (state.save.copying && overwrites(self, task, *state.save.copying))
    return true;
  for (StepId next{state.progress.committed_end.value + 1}; next <= task.step;
       ++next.value)
    if ((copy_due(state, next) || evaluation_due(state, next))
        && overwrites(self, task, next))
      return true;
  return false;
}

// -- commit ------------------------------------------------------------------

void tell_nodes_commit(MasterSelf self, StepId step) {
  if (self->state.setup.evaluates)
    return; // part of a step, whose own master commits it
  const auto& nodes = self->state.setup.actors.nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    ask<CommitDone>(
      self, nodes[i], commit_atom::value, context_for(self, step),
      CommitOrder{step},
      {.name
       = fmt::format("commit of step {} on worker {}", step_number(step), i),
       .worker = WorkerId{i}},
      [](const CommitDone&) {},
      [=](const Failure& failure) { fail_run(self, failure); });
}

void publish(MasterSelf self, StepId step) {
  auto& state = self->state;
  StepReport report = std::move(state.progress.reports[step]);
  state.progress.reports.erase(step);
  const auto now = Clock::now();
  report.step = step;
  report.duration = now - state.progress.last_commit;
  report.carried = state.progress.carried;
  state.progress.peak_memory_bytes
    = std::max(state.progress.peak_memory_bytes, report.peak_memory_bytes);
  report.peak_memory_bytes = state.progress.peak_memory_bytes;
  state.progress.last_commit = now;
  if (state.setup.save.best)
    state.setup.save.best->consider(
      state.setup.evaluates ? step : StepId{step.value + 1}, report.sums);
  if (state.setup.callbacks.on_step)
    state.setup.callbacks.on_step(report);
}

/// Returns the step whose work a checkpoint keeps; none before the first.
StepId step_before(StepId next_step) {
  return StepId{next_step.value - (next_step.value > 0 ? 1 : 0)};
}

void end_if_over(MasterSelf self) {
  auto& state = self->state;
  if (state.progress.committed_end < state.progress.end_step
      || state.tasks.running > 0 || state.save.copying || state.save.writing
      || state.evaluation.after)
    return;
  const bool done = state.progress.end_step == state.setup.end_step;
  end_run(self, {.kind = done ? RunEnd::Kind::done : RunEnd::Kind::stopped,
                 .next_step = state.progress.committed_end,
                 .checkpoint = state.save.folder});
}

/// Writes in the background; only the next save waits for it.
void write_copied(MasterSelf self, StepId next_step) {
  self->state.save.writing = true;
  ask<SaveDone>(
    self, self->state.setup.save.actor, write_atom::value,
    context_for(self, step_before(next_step)), WriteTask{},
    {.name = fmt::format("checkpoint of {} steps", next_step.value)},
    [=](const SaveDone& done) {
      self->state.save.writing = false;
      self->state.save.folder = done.folder;
      release(self);
    },
    [=](const Failure& failure) { fail_run(self, failure); });
}

void copied(MasterSelf self, const SaveTask& task, const SaveCopied& done,
            Clock::time_point started) {
  auto& state = self->state;
  const StepId next_step = task.next_step;
  if (next_step > state.setup.start.first_step) {
    const StepId step{next_step.value - 1};
    auto& copies = state.progress.reports[step].copies;
    (task.checkpoint ? copies.checkpoint : copies.snapshot)
      = Clock::now() - started;
    copies.record = done.snapshot;
    publish(self, step);
  }
  state.save.copying.reset();
  if (task.checkpoint)
    write_copied(self, next_step);
  release(self);
}

/// Commits finished steps: their rows are freed, checkpoints made. A save that
/// is due waits for the previous one: memory is bounded to one.
void commit_steps(MasterSelf self) {
  auto& state = self->state;
  while (!state.save.copying
         && state.progress.committed_end < state.progress.end_step
         && state.schedule->step_done(state.progress.committed_end)) {
    const StepId step = state.progress.committed_end;
    const StepId next{step.value + 1};
    const bool copies = copy_due(state, next);
    if (save_due(state, next) && state.save.writing)
      return;
    tell_nodes_commit(self, step);
    state.rows.commit(step);
    state.progress.committed_end = next;
    state.progress.carried = carried_at(state, step);
    std::erase_if(state.save.in_flight,
                  [&](const auto& call) { return call.first.step <= step; });
    if (evaluation_due(state, next))
      state.evaluation.after = next;
    copies ? save(self, next) : publish(self, step);
  }
}

// -- tasks -------------------------------------------------------------------

void start_task(MasterSelf self, plans::TaskRef task) {
  auto& state = self->state;
  state.idle.waits.end(template_of(self, task).devices);
  const auto waited = state.tasks.waited.extract(task);
  state.idle.times.begin(template_of(self, task).devices,
                         waited ? waited.mapped()
                                : plans::WaitReason::dependency,
                         Clock::now(), state.progress.reports[task.step].idle);
  switch (template_of(self, task).kind) {
  case plans::TaskKind::call:
    return send_call(self, task);
  case plans::TaskKind::move:
  case plans::TaskKind::update:
    return send_move(self, task);
  default:
    return send_residency(self, task);
  }
}

void got_data(MasterSelf self, StepId step, const DataBatch& batch) {
  auto& state = self->state;
  state.rows.begin(step, batch, state.setup.rows.samples_per_row,
                   state.setup.rows.rounds);
  auto& report = state.progress.reports[step];
  report.epoch = batch.epoch;
  report.tokens.num_samples = state.rows.num_samples(step);
  count_tokens(report, state.rows.trained_tokens(step));
  launch(self, std::exchange(state.tasks.need_data[step], {}));
  state.tasks.need_data.erase(step);
}

/// Keeps the task until the step's rows are known; requests them once.
void wait_for_data(MasterSelf self, plans::TaskRef task) {
  for (const auto device : template_of(self, task).devices)
    self->state.idle.waits.wait(device, "rows of the data set", task.step);
  auto& waiting = self->state.tasks.need_data[task.step];
  waiting.push_back(task);
  if (waiting.size() > 1)
    return;
  ask<DataBatch>(
    self, self->state.setup.rows.actor, next_atom::value,
    context_for(self, task.step), NextOrder{},
    {.name = fmt::format("rows of step {}", step_number(task.step))},
    [=](const DataBatch& batch) { got_data(self, task.step, batch); },
    [=](const Failure& failure) { fail_run(self, failure); });
}

} // namespace

void finish(MasterSelf self, plans::TaskRef task) {
  auto& state = self->state;
  --state.tasks.running;
  if (state.progress.ended)
    return;
  state.stalls.last_progress = AwakeClock::now();
  const auto ready = state.schedule->finished(task);
  for (const auto next : ready)
    state.tasks.waited[next]
      = plans::wait_reason(state.setup.dataflow.graph, next, task);
  commit_steps(self);
  launch(self, ready);
  evaluate_if_due(self);
  end_if_over(self);
}

void release(MasterSelf self) {
  commit_steps(self);
  launch(self, std::exchange(self->state.tasks.held, {}));
  evaluate_if_due(self);
  end_if_over(self);
}

Context context_for(MasterSelf self, StepId step) {
  return {.flow = 0,
          .step = step,
          .incarnation = self->state.setup.start.incarnation};
}

void save(MasterSelf self, StepId next_step) {
  auto& state = self->state;
  state.save.copying = next_step;
  SaveTask task{.checkpoint = save_due(state, next_step),
                .snapshot = snapshot_due(state, next_step),
                .next_step = next_step,
                .carried = carried_list(state.progress.carried),
                .replicas = {},
                .versions = {},
                .in_flight = {}};
  for (const auto& saved : state.setup.save.replicas) {
    const auto& setup = state.setup;
    const auto& role = setup.dataflow.replicas[saved.replica].role;
    task.replicas.push_back(saved.replica);
    task.versions.push_back(plans::version_for(
      setup.dataflow.workflow.role(role), next_step, saved.lag));
  }
  for (const auto& [call, done] : state.save.in_flight)
    if (call.step.value < next_step.value + state.save.ahead[call.task])
      task.in_flight.push_back({call.step, template_of(self, call).name, done});
  const auto started = Clock::now();
  ask<SaveCopied>(
    self, state.setup.save.actor, save_atom::value,
    context_for(self, step_before(next_step)), task,
    {.name = fmt::format("copy for the {} of {} steps",
                         task.checkpoint ? "checkpoint" : "snapshot",
                         next_step.value)},
    [=](const SaveCopied& done) { copied(self, task, done, started); },
    [=](const Failure& failure) { fail_run(self, failure); });
}

namespace {

/// Shows what idle devices wait for; during an evaluation, the waits of the
/// run.
void show_waits(MasterSelf self) {
  auto& state = self->state;
  if (!trace::enabled() || state.progress.ended || state.setup.evaluates
      || !state.schedule)
    return;
  for (const auto& [device, wait] : state.schedule->idle_devices())
    state.idle.waits.wait(
      device, wait ? state.schedule->describe_whom(*wait) : "the step's end",
      wait ? wait->whom.step : state.schedule->oldest_step());
}

} // namespace

void launch(MasterSelf self, const std::vector<plans::TaskRef>& tasks) {
  for (const auto task : tasks) {
    if (held_back(self, task)) {
      self->state.tasks.held.push_back(task);
      for (const auto device : template_of(self, task).devices)
        self->state.idle.waits.wait(device, "a checkpoint or an evaluation",
                                    task.step);
      self->state.tasks.waited[task] = plans::WaitReason::version;
    } else if (template_of(self, task).kind == plans::TaskKind::call
               && !self->state.rows.known(task.step)) {
      wait_for_data(self, task);
    } else if (is_needless(self, task)) {
      pass_over(self, task);
    } else {
      start_task(self, task);
    }
  }
  show_waits(self);
}

void fail_run(MasterSelf self, const Failure& failure) {
  auto& state = self->state;
  if (state.progress.ended)
    return;
  for (const auto& node : state.setup.actors.nodes)
    self->send(node, abort_atom::value, to_failure_message(failure));
  end_run(self, {.kind = RunEnd::Kind::failed,
                 .next_step = state.progress.committed_end,
                 .failure = failure,
                 .checkpoint = state.save.folder});
  state.setup.asks->fail_all(failure);
}

void end_run(MasterSelf self, const RunEnd& end) {
  if (std::exchange(self->state.progress.ended, true))
    return;
  self->state.idle.waits.end_all();
  self->state.setup.callbacks.on_end(end);
}

} // namespace troupe::actors
