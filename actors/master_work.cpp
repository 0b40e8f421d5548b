#include "actors/master_work.hpp"

#include "actors/call_tasks.hpp"
#include "actors/carried_values.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

const plans::TaskTemplate& template_of(MasterSelf self, plans::TaskRef task) {
  return self->state.setup.graph.tasks.at(task.task);
}

const plans::Call* call_of(MasterSelf self, plans::TaskRef task) {
  const auto& entry = template_of(self, task);
  return entry.kind == plans::TaskKind::call
           ? &self->state.setup.workflow.call(entry.call)
           : nullptr;
}

namespace {

/// Whether a checkpoint is written before `next_step`.
bool save_due(const MasterState& state, StepId next_step) {
  return !state.setup.saved.empty()
         && (next_step == state.end_step
             || (state.setup.save_every != 0
                 && next_step.value % state.setup.save_every == 0));
}

/// Whether the task would overwrite weights that the checkpoint before
/// `next_step` still has to copy.
bool overwrites(MasterSelf self, plans::TaskRef task, StepId next_step) {
  if (task.step < next_step)
    return false;
  const auto* call = call_of(self, task);
  if (call != nullptr)
    return call->kind == plans::CallKind::train;
  if (template_of(self, task).kind != plans::TaskKind::move)
    return false; // what comes and goes has the same values
  const auto& saved = self->state.setup.saved;
  return std::ranges::find(saved, *template_of(self, task).target,
                           &SavedReplica::replica)
         != saved.end();
}

bool held_back(MasterSelf self, plans::TaskRef task) {
  const auto& state = self->state;
  if (state.evaluating)
    return true;
  if (state.copying && overwrites(self, task, *state.copying))
    return true;
  for (StepId next{state.committed_end.value + 1}; next <= task.step;
       ++next.value)
    if ((save_due(state, next) || evaluation_due(state, next))
        && overwrites(self, task, next))
      return true;
  return false;
}

// -- commit ------------------------------------------------------------------

void tell_nodes_commit(MasterSelf self, StepId step) {
  if (self->state.setup.evaluates)
    return; // a part of a step, whose own master does it
  const auto& nodes = self->state.setup.nodes;
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
  StepReport report = std::move(state.reports[step]);
  state.reports.erase(step);
  const auto now = Clock::now();
  report.step = step;
  report.duration = now - state.last_commit;
  report.carried = state.carried;
  state.peak_memory_bytes
    = std::max(state.peak_memory_bytes, report.peak_memory_bytes);
  report.peak_memory_bytes = state.peak_memory_bytes;
  state.last_commit = now;
  if (state.setup.best)
    state.setup.best->consider(
      state.setup.evaluates ? step : StepId{step.value + 1}, report.sums);
  if (state.setup.on_step)
    state.setup.on_step(report);
}

/// Whose work a checkpoint keeps, for the trace; the first has none before.
StepId step_before(StepId next_step) {
  return StepId{next_step.value - (next_step.value > 0 ? 1 : 0)};
}

void end_if_over(MasterSelf self) {
  auto& state = self->state;
  if (state.committed_end < state.end_step || state.running > 0 || state.copying
      || state.writing || state.evaluating)
    return;
  const bool done = state.end_step == state.setup.end_step;
  end_run(self, {.kind = done ? RunEnd::Kind::done : RunEnd::Kind::stopped,
                 .next_step = state.committed_end,
                 .checkpoint = state.checkpoint});
}

/// Behind the steps' back; only the next save waits for it.
void write_copied(MasterSelf self, StepId next_step) {
  self->state.writing = true;
  ask<SaveDone>(
    self, self->state.setup.checkpoint, write_atom::value,
    context_for(self, step_before(next_step)), WriteTask{},
    {.name = fmt::format("checkpoint of {} steps", next_step.value)},
    [=](const SaveDone& done) {
      self->state.writing = false;
      self->state.checkpoint = done.folder;
      release(self);
    },
    [=](const Failure& failure) { fail_run(self, failure); });
}

void copied(MasterSelf self, StepId next_step, Clock::time_point started) {
  auto& state = self->state;
  if (next_step > state.setup.first_step) {
    const StepId step{next_step.value - 1};
    state.reports[step].save = Clock::now() - started;
    publish(self, step);
  }
  state.copying.reset();
  write_copied(self, next_step);
  release(self);
}

/// A step's rows may go, its checkpoint be made. A save that is due waits for
/// the one before it: there is memory for one.
void commit_steps(MasterSelf self) {
  auto& state = self->state;
  while (!state.copying && state.committed_end < state.end_step
         && state.schedule->step_done(state.committed_end)) {
    const StepId step = state.committed_end;
    const StepId next{step.value + 1};
    const bool saves = save_due(state, next);
    if (saves && state.writing)
      return;
    tell_nodes_commit(self, step);
    state.rows.commit(step);
    state.committed_end = next;
    state.carried = carried_at(state, step);
    std::erase_if(state.early,
                  [&](const auto& call) { return call.first.step <= step; });
    if (evaluation_due(state, next))
      state.evaluating = next;
    saves ? save(self, next) : publish(self, step);
  }
}

// -- tasks -------------------------------------------------------------------

void send_move(MasterSelf self, plans::TaskRef task) {
  auto& state = self->state;
  const auto& entry = template_of(self, task);
  const auto started = Clock::now();
  const Version version = version_of(state.setup, task);
  ++state.running;
  // Loaded at the start, refreshed by the checkpoint, or a follower that
  // leaves this version out: nothing to send.
  const auto [had, is_new] = state.versions.try_emplace(*entry.target, version);
  if (!is_new && std::exchange(had->second, version) == version)
    return finish(self, task);
  ask<MoveDone>(
    self, state.setup.moves.at({*entry.source, *entry.target}), run_atom::value,
    context_for(self, task.step), MoveTask{task.task, version},
    {.name
     = fmt::format("move {} of step {}", entry.name, step_number(task.step))},
    [=](const MoveDone& done) {
      auto& report = self->state.reports[task.step];
      add_move(report, task_report(template_of(self, task), started), done);
      // what is no copying waits for the other end's bytes
      self->state.idle.end(report.tasks.back(), Seconds::max(), report.idle);
      finish(self, task);
    },
    [=](const Failure& failure) { fail_run(self, failure); });
}

void send_life(MasterSelf self, plans::TaskRef task) {
  const auto& entry = template_of(self, task);
  const auto started = Clock::now();
  ++self->state.running;
  ask<LifeDone>(
    self, self->state.setup.lives.at(*entry.target), run_atom::value,
    context_for(self, task.step), life_order(self->state.setup, task),
    {.name = fmt::format("{} of step {}", entry.name, step_number(task.step))},
    [=](const LifeDone& done) {
      auto& report = self->state.reports[task.step];
      add_life(report, task_report(template_of(self, task), started), done);
      self->state.idle.end(report.tasks.back(), Seconds{0}, report.idle);
      finish(self, task);
    },
    [=](const Failure& failure) { fail_run(self, failure); });
}

void start_task(MasterSelf self, plans::TaskRef task) {
  auto& state = self->state;
  state.device_waits.end(template_of(self, task).devices);
  const auto waited = state.waited.extract(task);
  state.idle.begin(template_of(self, task).devices,
                   waited ? waited.mapped() : plans::WaitReason::dependency,
                   Clock::now(), state.reports[task.step].idle);
  switch (template_of(self, task).kind) {
  case plans::TaskKind::call:
    return send_call(self, task);
  case plans::TaskKind::move:
    return send_move(self, task);
  default:
    return send_life(self, task);
  }
}

void got_data(MasterSelf self, StepId step, const DataBatch& batch) {
  auto& state = self->state;
  state.rows.begin(step, batch, state.setup.samples_per_row);
  auto& report = state.reports[step];
  report.epoch = batch.epoch;
  report.num_samples = state.rows.num_samples(step);
  count_tokens(report, state.rows.tokens(step));
  launch(self, std::exchange(state.need_data[step], {}));
  state.need_data.erase(step);
}

/// Keeps the task until the step's rows are known; asks for them once.
void wait_for_data(MasterSelf self, plans::TaskRef task) {
  for (const auto device : template_of(self, task).devices)
    self->state.device_waits.wait(device, "rows of the data set", task.step);
  auto& waiting = self->state.need_data[task.step];
  waiting.push_back(task);
  if (waiting.size() > 1)
    return;
  ask<DataBatch>(
    self, self->state.setup.data, next_atom::value,
    context_for(self, task.step), NextOrder{},
    {.name = fmt::format("rows of step {}", step_number(task.step))},
    [=](const DataBatch& batch) { got_data(self, task.step, batch); },
    [=](const Failure& failure) { fail_run(self, failure); });
}

} // namespace

void finish(MasterSelf self, plans::TaskRef task) {
  auto& state = self->state;
  --state.running;
  if (state.ended)
    return;
  state.last_progress = AwakeClock::now();
  const auto ready = state.schedule->finished(task);
  for (const auto next : ready)
    state.waited[next] = plans::wait_reason(state.setup.graph, next, task);
  commit_steps(self);
  launch(self, ready);
  evaluate_if_due(self);
  end_if_over(self);
}

void release(MasterSelf self) {
  commit_steps(self);
  launch(self, std::exchange(self->state.held, {}));
  evaluate_if_due(self);
  end_if_over(self);
}

Context context_for(MasterSelf self, StepId step) {
  return {
    .flow = 0, .step = step, .incarnation = self->state.setup.incarnation};
}

void save(MasterSelf self, StepId next_step) {
  auto& state = self->state;
  state.copying = next_step;
  SaveTask task{.next_step = next_step,
                .carried = carried_list(state.carried),
                .replicas = {},
                .versions = {},
                .early = {}};
  for (const auto& saved : state.setup.saved) {
    const auto& setup = state.setup;
    const auto& role = setup.replicas[saved.replica].role;
    task.replicas.push_back(saved.replica);
    task.versions.push_back(
      plans::version_for(setup.workflow.role(role), next_step, saved.lag));
  }
  for (const auto& [call, done] : state.early)
    if (call.step.value < next_step.value + state.ahead[call.task])
      task.early.push_back({call.step, template_of(self, call).name, done});
  const auto started = Clock::now();
  ask<SaveCopied>(
    self, state.setup.checkpoint, save_atom::value,
    context_for(self, step_before(next_step)), task,
    {.name
     = fmt::format("copy for the checkpoint of {} steps", next_step.value)},
    [=](const SaveCopied&) { copied(self, next_step, started); },
    [=](const Failure& failure) { fail_run(self, failure); });
}

namespace {

/// An evaluation's devices show those of the run that waits for it.
void show_waits(MasterSelf self) {
  auto& state = self->state;
  if (!trace::enabled() || state.ended || state.setup.evaluates
      || !state.schedule)
    return;
  for (const auto& [device, wait] : state.schedule->idle_devices())
    state.device_waits.wait(
      device, wait ? state.schedule->describe_whom(*wait) : "the step's end",
      wait ? wait->whom.step : state.schedule->oldest_step());
}

} // namespace

void launch(MasterSelf self, const std::vector<plans::TaskRef>& tasks) {
  for (const auto task : tasks) {
    if (held_back(self, task)) {
      self->state.held.push_back(task);
      for (const auto device : template_of(self, task).devices)
        self->state.device_waits.wait(device, "a checkpoint or an evaluation",
                                      task.step);
      self->state.waited[task] = plans::WaitReason::version;
    } else if (template_of(self, task).kind == plans::TaskKind::call
               && !self->state.rows.known(task.step)) {
      wait_for_data(self, task);
    } else {
      start_task(self, task);
    }
  }
  show_waits(self);
}

void fail_run(MasterSelf self, const Failure& failure) {
  auto& state = self->state;
  if (state.ended)
    return;
  for (const auto& node : state.setup.nodes)
    self->send(node, abort_atom::value, to_trouble(failure));
  end_run(self, {.kind = RunEnd::Kind::failed,
                 .next_step = state.committed_end,
                 .failure = failure,
                 .checkpoint = state.checkpoint});
  state.setup.asks->fail_all(failure);
}

void end_run(MasterSelf self, const RunEnd& end) {
  if (std::exchange(self->state.ended, true))
    return;
  self->state.device_waits.end_all();
  self->state.setup.on_end(end);
}

} // namespace troupe::actors
