// Every run that trains on what it generates keeps its samples: a host
// function, added to the users' workflow, reads the finished rows of a step and
// appends them to samples.jsonl from the worker that holds them. So rows never
// pass through the master, and `run.replay` has what it needs.
#pragma once

#include "config/ids.hpp"
#include "plans/execution_plan.hpp"
#include "plans/workflow.hpp"

#include "troupe/key.hpp"

#include <filesystem>
#include <string_view>
#include <vector>

namespace troupe::actors {

inline constexpr std::string_view record_fn = "record_samples";
/// Where the verbs' sessions leave their rows, in the run folder.
inline constexpr const char* verb_rows_file = "rows.jsonl";

/// Rows of the evaluation after `step` steps: eval/step_000020.jsonl.
std::filesystem::path evaluation_file(const std::filesystem::path& run_folder,
                                      StepId step);

/// What its generate calls make besides the four keys of every answer: keys of
/// own actors that lead conversations, and answers under a prefix.
std::vector<KeyInfo> recorded_keys(const plans::Workflow& workflow);

/// The same, and what an own workflow names as metrics of samples.
std::vector<KeyInfo> sample_keys(const plans::Workflow& workflow);

/// What a session runs.
struct RunCalls {
  plans::Workflow workflow;
  plans::ExecutionPlan plan;
};
/// The users' workflow and plan with recording, and with evaluation where the
/// settings ask for it; or evaluation alone.
RunCalls run_calls(const plans::Workflow& workflow,
                   const plans::ExecutionPlan& plan, const Settings& settings,
                   bool only_evaluates);

} // namespace troupe::actors
