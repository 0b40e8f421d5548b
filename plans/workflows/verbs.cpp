// What `troupe generate`, `score` and `convert` run: one model, at most one
// pass over its calls a batch, and a host function that writes the rows to a
// file.
#include "config/settings.hpp"
#include "plans/workflow.hpp"

namespace troupe::plans {

namespace {

/// The role of the settings' only model.
Role verb_role(const Settings& settings) {
  const bool scalar_head = settings.models.contains("reward");
  return {.name = scalar_head ? "reward" : "actor", .scalar_head = scalar_head};
}

Call verb_write(const char* fn, std::vector<std::string> reads) {
  return {.name = "write",
          .kind = CallKind::function,
          .reads = std::move(reads),
          .fn = fn};
}

Call verb_inference(const Role& role, const char* fn,
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
  const Role role = verb_role(settings);
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
                    verb_write("write_answers", made)},
          .dataset_keys = {"prompt_ids"},
          .samples_are_prompts = true};
}

Workflow score_workflow(const Settings& settings) {
  const Role role = verb_role(settings);
  Workflow score{
    .name = "score", .roles = {role}, .dataset_keys = {"sequence_ids"}};
  if (role.scalar_head)
    score.calls = {verb_inference(role, "scores", {"scores"}),
                   verb_inference(role, "values", {"values"})};
  else
    score.calls = {verb_inference(role, "logprobs", {"logprobs", "entropy"})};
  std::vector<std::string> reads = {"sequence_ids"};
  for (const auto& call : score.calls)
    reads.insert(reads.end(), call.writes.begin(), call.writes.end());
  score.calls.push_back(verb_write("write_scores", std::move(reads)));
  return score;
}

Workflow convert_workflow(const Settings& settings) {
  const Role role = verb_role(settings);
  return {.name = "convert",
          .roles = {role},
          .calls = {{.name = "hold",
                     .kind = CallKind::inference,
                     .role = role.name,
                     .fn = role.scalar_head ? "scores" : "logprobs"}}};
}

} // namespace troupe::plans
