#include "actors/recording.hpp"

#include "plans/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

plans::Workflow with_recording(plans::Workflow workflow) {
  const auto has = [&](plans::CallKind kind) {
    return std::ranges::any_of(workflow.calls, [=](const plans::Call& call) {
      return call.kind == kind;
    });
  };
  if (workflow.writer("sequence_ids") == nullptr
      || !has(plans::CallKind::train))
    return workflow;
  plans::Call call;
  call.name = record_fn;
  call.kind = plans::CallKind::function;
  call.fn = record_fn;
  call.scope = plans::Scope::batch;
  for (const char* key : {"sequence_ids", "loss_mask", "logprobs", "truncated",
                          "scores", "ref_logprobs"})
    if (workflow.writer(key) != nullptr)
      call.reads.emplace_back(key);
  workflow.calls.push_back(std::move(call));
  return workflow;
}

std::filesystem::path evaluation_file(const std::filesystem::path& run_folder,
                                      StepId step) {
  return run_folder / "eval" / fmt::format("step_{:06}.jsonl", step.value);
}

RunCalls run_calls(const plans::Workflow& workflow,
                   const plans::ExecutionPlan& plan, const Settings& settings,
                   bool only_evaluates) {
  const auto all = plans::with_evaluation(with_recording(workflow), settings);
  return {only_evaluates ? plans::evaluation_of(all) : all,
          plans::place_evaluation(plan, all)};
}

} // namespace troupe::actors
