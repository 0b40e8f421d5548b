// On-policy distillation: the actor responds, the teacher names its likeliest
// tokens at each position of the responses, and the actor is trained towards
// them (GKD, arXiv 2306.13649, with lambda 1). No rewards, no advantages.
#include "plans/workflow/rl_calls.hpp"

namespace troupe::plans {

Workflow distillation_workflow(const Settings& settings) {
  Workflow distillation{
    .name = "distillation",
    .roles = {{.name = "actor", .trained = true}, {.name = "teacher"}},
    .dataset_keys = {"prompt_ids"},
    .samples_are_prompts = true};
  Call teacher{.name = "teacher_inf",
               .kind = CallKind::inference,
               .role = "teacher",
               .reads = {"sequence_ids", "loss_mask"},
               .writes = {"teacher_ids", "teacher_logprobs"},
               .fn = "top_logprobs",
               .renames = {{"teacher_ids", "top_ids"},
                           {"teacher_logprobs", "top_logprobs"}}};
  Call lengths{.name = "lengths",
               .kind = CallKind::function,
               .reads = {"loss_mask", "truncated"},
               .fn = "response_lengths"};
  distillation.calls = {
    internal::generate_call(settings), std::move(lengths), std::move(teacher),
    internal::train_call(
      "actor", "distillation_loss",
      {"sequence_ids", "loss_mask", "teacher_ids", "teacher_logprobs"})};
  return distillation;
}

} // namespace troupe::plans
