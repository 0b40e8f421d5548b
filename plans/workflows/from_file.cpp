#include "config/workflow_file.hpp"
#include "plans/workflow_file.hpp"

#include <algorithm>
#include <array>

namespace troupe::plans {

namespace {

CallKind kind_of(const std::string& word) {
  if (word == "generate")
    return CallKind::generate;
  if (word == "infer")
    return CallKind::inference;
  return word == "train" ? CallKind::train : CallKind::function;
}

Call call_of(const FileCall& from) {
  Call call{.name = from.name,
            .kind = kind_of(from.kind),
            .role = from.role,
            .reads = from.reads,
            .writes = from.writes,
            .fn = from.fn};
  for (const auto& [key, word] : from.renames)
    call.renames.push_back({key, word});
  return call;
}

} // namespace

Workflow file_workflow(const std::string& file) {
  const WorkflowFile from = read_workflow_file(file);
  Workflow workflow{.name = file};
  workflow.samples_are_prompts = from.traits.data == DataKind::prompts;
  for (const auto& role : from.traits.roles) {
    workflow.roles.push_back({.name = role.name,
                              .trained = role.trained,
                              .scalar_head = role.scalar_head});
    if (!role.follows.empty())
      workflow.roles.back().follows = {.role = role.follows};
  }
  for (const auto& call : from.calls)
    workflow.calls.push_back(call_of(call));
  constexpr std::array prompts = {"prompt_ids"};
  constexpr std::array sequences = {"sequence_ids", "loss_mask"};
  const auto add = [&](const char* key) {
    for (const auto& call : workflow.calls)
      if (workflow.writer(key) == nullptr
          && std::ranges::find(call.reads, key) != call.reads.end())
        return workflow.dataset_keys.emplace_back(key), void();
  };
  if (workflow.samples_are_prompts)
    std::ranges::for_each(prompts, add);
  else
    std::ranges::for_each(sequences, add);
  return workflow;
}

} // namespace troupe::plans
