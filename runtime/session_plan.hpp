// Everything a run is, decided and checked before a process starts: settings
// without `auto`, workflow, plan, run folder, where to continue. `prepare`
// makes it and writes no run folder; `begin_attempt` then claims the run
// folder.
#pragma once

#include "actors/move_check_actor.hpp"
#include "actors/step_report.hpp"
#include "config/model_shape.hpp"
#include "config/settings.hpp"
#include "models/snapshot.hpp"
#include "plans/execution_plan.hpp"
#include "plans/plan_check.hpp"
#include "plans/workflow.hpp"
#include "runtime/auto_plan.hpp"
#include "runtime/resume.hpp"
#include "runtime/run_inputs.hpp"
#include "runtime/run_rows.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

struct SessionPlan {
  Settings settings; ///< cluster, plan and run.steps without `auto`
  plans::Workflow workflow;
  plans::ExecutionPlan plan;
  std::string plan_name; ///< "data_parallel (chosen by auto)", a file's name
  std::vector<std::string> plan_why; ///< of a searched one: how good, the next
  plans::PlanReport report;          ///< of plan_check: warnings, peak bytes
  std::map<std::string, ModelShape> shapes; ///< by role
  RunRows rows;                       ///< of data.train; none of `convert`
  std::uint64_t num_rows = 0;         ///< usable rows of data.train
  std::uint64_t bad_rows = 0;         ///< skipped ones of data.train
  std::uint32_t samples_per_step = 0; ///< batch_size * n
  RunInputs inputs; ///< what it reads beside its settings; none of verbs

  std::filesystem::path run_folder;
  std::uint32_t num_steps = 0;  ///< of the whole run
  std::uint32_t first_step = 0; ///< committed steps it continues from
  std::optional<std::filesystem::path> checkpoint; ///< to continue from
  bool resuming = false;
  std::uint32_t attempt = 1;
  ResumeDecision resume;
  std::chrono::duration<double> max_time{0}; ///< 0: none
  bool quiet = false;

  /// Of `convert`: the loaded model is saved so, without a step.
  std::optional<models::HfStore> convert_to;
  /// Of verbs, which have no checkpoint to stop after: a signal ends them.
  bool stops_at_once = false;
  /// Of the doctor: instead of steps, moves weights to and fro between the two
  /// replicas of its model for so long; zero: no.
  std::chrono::duration<double> move_check{0};
  std::function<void(const actors::MoveCheckResult&)> on_moved;
  /// Of `eval`: no training, one evaluation.
  bool only_evaluates = false;
  /// Told of each evaluation, on the session's thread.
  std::function<void(const actors::StepReport&)> on_evaluation;
  /// Told how it ended.
  std::function<void(const actors::RunEnd&)> on_end;
  /// Told of each committed step, on the session's thread.
  std::function<void(const actors::StepReport&)> on_step;
  bool open_page = false; ///< show the trace page in a browser
};

/// Workflow, shapes and plan of the settings: what the plan verbs need. Model
/// folders need no weights, errors of the plan stand in `report`.
SessionPlan plan_session(const Settings& settings,
                         MeasuredNow measured = MeasuredNow::is_kept);

/// Resolves and checks settings, model folders, data file, plan and run folder.
/// ConfigError (exit 2) or PlanError (exit 3) in the user's words. Writes
/// nothing but, where a search has to measure first, what it measured.
SessionPlan prepare(const Settings& settings,
                    MeasuredNow measured = MeasuredNow::is_kept);

/// In which type checkpoints keep the role's weights.
DType saved_dtype(const SessionPlan& session, const std::string& role);

/// Claims the run folder: renames the old one where asked, makes it, writes
/// config.yaml, plan.yaml, inputs.json, data.index, dataflow.json and
/// attempts/NN/, cuts
/// metrics.jsonl and samples.jsonl back to `first_step`, removes an old stop
/// request. The lock must live as long as the run.
std::shared_ptr<class RunLock> begin_attempt(const SessionPlan& session);

} // namespace troupe::runtime
