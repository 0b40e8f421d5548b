// Evaluation as a separate workflow over the replicas that train: calls named
// eval_* that read the rows of eval.data and write keys named eval_*, and a
// final function that computes the metrics. Where responses are generated and
// scored, these calls are twins of the training calls that do so; models that
// learn from given rows are evaluated on held-out ones. An evaluation step runs
// between two training steps, on the current weights
// (`actors/master/master_actor.hpp`).
#pragma once

#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

#include <cstdint>

namespace troupe::plans {

/// Returns whether the settings ask for evaluation during training.
bool evaluates(const Settings& settings);

/// Evaluation that plans are checked and simulated with.
struct Evaluation {
  Workflow workflow = {};    ///< includes training's calls; no calls: none
  std::uint32_t samples = 0; ///< eval.max_rows; those of a step where it is 0
  std::uint32_t every = 0;   ///< steps; 0: only before and after training

  bool none() const {
    return workflow.calls.empty();
  }
};
/// Returns the evaluation of the settings; `samples_per_step` is training's.
Evaluation evaluation_in(const Workflow& workflow, const Settings& settings,
                         std::uint32_t samples_per_step);

/// Returns `workflow` with the calls of its evaluation appended; unchanged if
/// eval.data is empty. Throws ConfigError for a workflow that has nothing to
/// evaluate.
Workflow with_evaluation(Workflow workflow, const Settings& settings);

/// Returns such a workflow without them.
Workflow without_evaluation(Workflow workflow);

/// Returns only the evaluation of such a workflow: nothing is trained.
Workflow evaluation_of(const Workflow& workflow);
/// Returns the same as part of a run that also trains: roles change elsewhere.
Workflow evaluation_beside_training(const Workflow& workflow);

/// Places the calls of evaluation: on the replica where their role trains, else
/// where a call of that role runs. They need no replica of their own.
ExecutionPlan place_evaluation(ExecutionPlan plan, const Workflow& workflow);

} // namespace troupe::plans
