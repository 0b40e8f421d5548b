// KTO: responses that are labelled one by one. The point that they are compared
// with, the KL divergence of policy and reference, is estimated from prompts
// with the completions of other rows. It is a mean over the whole batch, so it
// is computed before the training, which may cut the batch in any way (I1).
#include "plans/workflow/rl_calls.hpp"

namespace troupe::plans {

namespace {

/// Returns the log-probabilities by `role` of the mismatched sequences.
Call mismatched_inference(const std::string& role, const std::string& writes) {
  return {.name = role + "_kl_inf",
          .kind = CallKind::inference,
          .role = role,
          .reads = {"kl_sequence_ids", "kl_loss_mask"},
          .writes = {writes},
          .fn = "logprobs",
          .renames = {{"kl_sequence_ids", "sequence_ids"},
                      {"kl_loss_mask", "loss_mask"},
                      {writes, "logprobs"}}};
}

} // namespace

Workflow kto_workflow(const Settings& settings) {
  Workflow kto{.name = "kto",
               .roles = {{.name = "actor", .trained = true},
                         internal::reference_role(settings)},
               .dataset_keys = {"sequence_ids", "loss_mask", "desirable"}};
  kto.calls
    = {{.name = "mismatch",
        .kind = CallKind::function,
        .reads = {"sequence_ids", "loss_mask"},
        .writes = {"kl_sequence_ids", "kl_loss_mask"},
        .fn = "kto_mismatch"},
       internal::inference_call("ref_inf", "ref", "logprobs", "ref_logprobs"),
       mismatched_inference("ref", "kl_ref_logprobs"),
       mismatched_inference("actor", "kl_logprobs"),
       {.name = "kl",
        .kind = CallKind::function,
        .reads = {"kl_loss_mask", "kl_logprobs", "kl_ref_logprobs"},
        .writes = {"kl_point"},
        .fn = "kto_kl"},
       internal::train_call("actor", "kto_loss",
                            {"sequence_ids", "loss_mask", "desirable",
                             "ref_logprobs", "kl_point"})};
  return kto;
}

} // namespace troupe::plans
