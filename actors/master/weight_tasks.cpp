#include "actors/master/weight_tasks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

/// Returns whether nothing needs to be sent: the target was loaded at the
/// start, refreshed by the checkpoint, or is of an EMA role that skips this
/// version; or its servers had the version before.
bool has_version(MasterSelf self, plans::TaskRef task, Version version) {
  const auto& entry = template_of(self, task);
  auto& progress = self->state.progress;
  auto& known = entry.kind == plans::TaskKind::update ? progress.server_versions
                                                      : progress.versions;
  const auto [had, is_new] = known.try_emplace(*entry.target, version);
  return !is_new && std::exchange(had->second, version) == version;
}

/// Returns whether an update is for a call whose results came from a
/// checkpoint: the weights that it was made by are gone.
bool is_answered(MasterSelf self, plans::TaskRef task) {
  const auto& entry = template_of(self, task);
  if (entry.kind != plans::TaskKind::update)
    return false;
  return std::ranges::any_of(
    self->state.save.in_flight, [&](const auto& answered) {
      const auto& call = answered.first;
      return call.step == task.step
             && template_of(self, call).call == entry.call;
    });
}

} // namespace

void send_move(MasterSelf self, plans::TaskRef task) {
  auto& state = self->state;
  const auto& entry = template_of(self, task);
  const auto started = Clock::now();
  const Version version = version_of(state.setup, task);
  ++state.tasks.running;
  if (is_answered(self, task) || has_version(self, task, version))
    return finish(self, task);
  ask<MoveDone>(
    self, state.setup.actors.moves.at({*entry.source, *entry.target}),
    run_atom::value, context_for(self, task.step), MoveTask{task.task, version},
    {.name = fmt::format("{}{} of step {}",
                         entry.kind == plans::TaskKind::move ? "move " : "",
                         entry.name, step_number(task.step))},
    [=](const MoveDone& done) {
      auto& report = self->state.progress.reports[task.step];
      add_move(report, task_report(template_of(self, task), started), done);
      // time that is not spent copying is spent waiting for the other end's
      // bytes
      self->state.idle.times.end(report.tasks.back(), Seconds::max(),
                                 report.idle);
      finish(self, task);
    },
    [=](const Failure& failure) { fail_run(self, failure); });
}

void send_residency(MasterSelf self, plans::TaskRef task) {
  const auto& entry = template_of(self, task);
  const auto started = Clock::now();
  ++self->state.tasks.running;
  ask<ResidencyDone>(
    self, self->state.setup.actors.residencies.at(*entry.target),
    run_atom::value, context_for(self, task.step),
    residency_order(self->state.setup, task),
    {.name = fmt::format("{} of step {}", entry.name, step_number(task.step))},
    [=](const ResidencyDone& done) {
      auto& report = self->state.progress.reports[task.step];
      add_residency(report, task_report(template_of(self, task), started),
                    done);
      self->state.idle.times.end(report.tasks.back(), Seconds{0}, report.idle);
      finish(self, task);
    },
    [=](const Failure& failure) { fail_run(self, failure); });
}

} // namespace troupe::actors
