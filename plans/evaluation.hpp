// Evaluation as a workflow of its own over the replicas that train: calls named
// eval_* that read the rows of eval.data and write keys named eval_*, and a
// function at the end that judges. Where answers are generated and scored, they
// are twins of the calls that do so in training; models that learn from given
// rows are asked about held-out ones. A step of it runs between two steps of
// training, on the weights that are there (`actors/master_actor.hpp`).
#pragma once

#include "plans/execution_plan.hpp"
#include "plans/workflow.hpp"

#include <cstdint>

namespace troupe::plans {

/// Whether the settings ask for evaluation during training.
bool evaluates(const Settings& settings);

/// What plans are checked and simulated with.
struct Evaluation {
  Workflow workflow = {};    ///< training's calls too; no calls: none
  std::uint32_t samples = 0; ///< eval.max_rows; of a step where it is 0
  std::uint32_t every = 0;   ///< steps; 0: only before and after training

  bool none() const {
    return workflow.calls.empty();
  }
};
/// Of the settings; `samples_per_step` of training.
Evaluation evaluation_in(const Workflow& workflow, const Settings& settings,
                         std::uint32_t samples_per_step);

/// `workflow` with its evaluation's calls behind the others; as it is where
/// eval.data is empty. ConfigError for a workflow that has nothing to judge.
Workflow with_evaluation(Workflow workflow, const Settings& settings);

/// Such a workflow without them.
Workflow without_evaluation(Workflow workflow);

/// The evaluation of such a workflow alone: nothing is trained.
Workflow evaluation_of(const Workflow& workflow);

/// Places the calls of evaluation: on the replica where their role trains, else
/// where a call of that role runs. They need no replica of their own.
ExecutionPlan place_evaluation(ExecutionPlan plan, const Workflow& workflow);

} // namespace troupe::plans
