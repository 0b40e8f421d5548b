// Every run that trains on what it generates keeps its samples: a host
// function, added to the users' workflow, reads the finished rows of a step and
// appends them to samples.jsonl from the worker that holds them. So rows do
// not pass through the master, unless that worker's host shares no files, and
// `run.replay` has what it needs.
#pragma once

#include "config/base/ids.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

#include "troupe/key.hpp"

#include <filesystem>
#include <string_view>
#include <vector>

namespace troupe::actors {

inline constexpr std::string_view record_fn = "record_samples";
/// File in the run folder. A worker opens it once: a later attempt puts a copy
/// in its place, so that nothing of an older one reaches it.
inline constexpr const char* samples_file = "samples.jsonl";
/// File in the run folder to which the sessions of commands write their rows.
inline constexpr const char* command_rows_file = "rows.jsonl";

/// Returns the file of the evaluation after `step` steps:
/// eval/step_000020.jsonl.
std::filesystem::path evaluation_file(const std::filesystem::path& run_folder,
                                      StepId step);

/// Returns what the generate calls produce besides the four keys of every
/// response: keys of user-defined actors that lead conversations, and responses
/// under a prefix.
std::vector<KeyInfo> recorded_keys(const plans::Workflow& workflow);

/// Returns the recorded keys and what a user-defined workflow names as metrics
/// of samples.
std::vector<KeyInfo> sample_keys(const plans::Workflow& workflow);

/// Workflow and plan that a session runs.
struct RunCalls {
  plans::Workflow workflow;
  plans::ExecutionPlan plan;
};
/// Returns the users' workflow and plan with the sample log, and with the
/// evaluation if the settings have one; or the evaluation alone.
RunCalls run_calls(const plans::Workflow& workflow,
                   const plans::ExecutionPlan& plan, const Settings& settings,
                   bool only_evaluates);

} // namespace troupe::actors
