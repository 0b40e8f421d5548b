#include "runtime/session/run_basis.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/worker_base/sample_log.hpp"
#include "plans/weights/residency.hpp"
#include "plans/workflow/evaluation.hpp"
#include "runtime/metrics/step_metrics.hpp"
#include "runtime/planning/auto_plan.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/session/replica_states.hpp"

#include <utility>

namespace troupe::runtime {

namespace {

/// Returns the tracker of the best checkpoint, with the values of earlier
/// attempts.
std::shared_ptr<actors::BestCheckpoint>
best_checkpoint(const PreparedRun& run) {
  const auto& metric = run.work.settings.run.keep_best;
  if (metric.empty())
    return nullptr;
  const bool evaluates = !run.work.settings.eval.data.empty();
  auto best = std::make_shared<actors::BestCheckpoint>(
    run.attempt.folder, metric, evaluates, StepId{run.steps.end});
  const RunFolder folder(run.attempt.folder);
  if (run.attempt.continues())
    for (const auto steps : folder.checkpoints())
      if (const auto value
          = last_metrics(folder.metrics_file(), steps).find(metric))
        best->consider(StepId{steps}, *value);
  return best;
}

RunStart start_of(const RunBasis& basis) {
  const RunAttempt& attempt = basis.run.attempt;
  RunStart start;
  for (const auto& value : basis.workflow.carried)
    start.carried[value.name] = value.initial;
  if (attempt.snapshot || attempt.checkpoint) {
    auto state = attempt.snapshot ? attempt.snapshot->state
                 : attempt.is_checked
                   ? actors::read_checkpoint_state(*attempt.checkpoint)
                   : actors::read_checkpoint(*attempt.checkpoint);
    for (const auto& [name, value] : state.carried)
      start.carried[name] = value;
    start.in_flight = std::move(state.in_flight);
  }
  for (const auto& replica : basis.replicas.all)
    if (is_loaded(basis, replica))
      start.versions[replica.id] = first_version(basis, replica);
  return start;
}

} // namespace

RunBasis make_basis(const PreparedRun& run, const std::string& run_id) {
  const PlannedWork& work = run.work;
  const bool only_evaluates = run.mode() == RunMode::evaluate;
  const auto [workflow, plan] = actors::run_calls(
    work.workflow, work.plan, work.settings, only_evaluates);
  const auto training = plans::without_evaluation(workflow);
  RunBasis basis{.run = run,
                 .workflow = workflow,
                 .plan = plan,
                 .replicas = plans::replicas_of(workflow, plan),
                 .graph = plans::make_step_graph(
                   training, plan, plans::replicas_of(training, plan)),
                 .durations_s = {},
                 .incarnation = Incarnation{run.attempt.number},
                 .run_id = run_id,
                 .asks = std::make_shared<actors::AskTable>(),
                 .best = best_checkpoint(run),
                 .start = {},
                 .recorded = std::make_shared<std::atomic<std::uint64_t>>(
                   run.attempt.snapshot ? run.attempt.snapshot->key.id : 0)};
  if (!only_evaluates && !is_command_workflow(work.settings.workflow))
    basis.durations_s = predicted_task_seconds(work.settings, training,
                                               work.shapes, plan, basis.graph);
  basis.start = start_of(basis);
  return basis;
}

} // namespace troupe::runtime
