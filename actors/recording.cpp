#include "actors/recording.hpp"

#include <algorithm>

namespace troupe::actors {

plans::Workflow with_recording(plans::Workflow workflow) {
  const auto has = [&](plans::CallKind kind) {
    return std::ranges::any_of(workflow.calls, [=](const plans::Call& call) {
      return call.kind == kind;
    });
  };
  if (!has(plans::CallKind::generate) || !has(plans::CallKind::train))
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

} // namespace troupe::actors
