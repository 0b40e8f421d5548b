// Workflows of `troupe generate`, `score` and `convert`: one model, at most one
// pass over its calls per batch, and a host function that writes the rows to a
// file.
#include "config/settings/settings.hpp"
#include "plans/workflow/workflow.hpp"

namespace troupe::plans {

namespace {

/// Returns the role of the only model of the settings.
Role command_role(const Settings& settings) {
  const bool scalar_head = settings.models.contains("reward");
  return {.name = scalar_head ? "reward" : "actor", .scalar_head = scalar_head};
}

Call command_write(const char* fn, std::vector<std::string> reads) {
  return {.name = "write",
          .kind = CallKind::function,
          .reads = std::move(reads),
          .fn = fn};
}

Call command_inference(const Role& role, const char* fn,
                       std::vector<std::string> writes) {
  return {.name = fn,
          .kind = CallKind::inference,
          .role = role.name,
          .reads = {"sequence_ids"},
          .writes = std::move(writes),
          .fn = fn};
}

} // namespace

Workflow generate_workflow(const Settings& settings) {
  const Role role = command_role(settings);
  const std::vector<std::string> made
    = {"sequence_ids", "loss_mask", "logprobs", "truncated"};
  return {.name = "generate",
          .roles = {role},
          .calls = {{.name = "generate",
                     .kind = CallKind::generate,
                     .role = role.name,
                     .reads = {"prompt_ids"},
                     .writes = made,
                     .fn = "generate"},
                    command_write("write_answers", made)},
          .dataset_keys = {"prompt_ids"},
          .samples_are_prompts = true};
}

Workflow score_workflow(const Settings& settings) {
  const Role role = command_role(settings);
  Workflow score{
    .name = "score", .roles = {role}, .dataset_keys = {"sequence_ids"}};
  if (role.scalar_head)
    score.calls = {command_inference(role, "scores", {"scores"}),
                   command_inference(role, "values", {"values"})};
  else
    score.calls
      = {command_inference(role, "logprobs", {"logprobs", "entropy"})};
  std::vector<std::string> reads = {"sequence_ids"};
  for (const auto& call : score.calls)
    reads.insert(reads.end(), call.writes.begin(), call.writes.end());
  score.calls.push_back(command_write("write_scores", std::move(reads)));
  return score;
}

Workflow convert_workflow(const Settings& settings) {
  const Role role = command_role(settings);
  return {.name = "convert",
          .roles = {role},
          .calls = {{.name = "hold",
                     .kind = CallKind::inference,
                     .role = role.name,
                     .fn = role.scalar_head ? "scores" : "logprobs"}}};
}

} // namespace troupe::plans
