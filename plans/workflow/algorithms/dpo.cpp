// DPO: the reference model's log-probabilities of both responses where the loss
// reads them, then the loss.
#include "plans/workflow/rl_calls.hpp"

namespace troupe::plans {

Workflow dpo_workflow(const Settings& settings) {
  const std::vector<std::string> pairs
    = {"chosen_ids", "chosen_loss_mask", "rejected_ids", "rejected_loss_mask"};
  Workflow dpo{.name = "dpo",
               .roles = {{.name = "actor", .trained = true}},
               .dataset_keys = pairs};
  Call train{.name = "actor_train",
             .kind = CallKind::train,
             .role = "actor",
             .reads = pairs,
             .fn = "dpo_loss"};
  if (!compares_with_reference(settings)) {
    dpo.calls = {std::move(train)};
    return dpo;
  }
  dpo.roles.push_back(internal::reference_role(settings));
  Call ref_inf{.name = "ref_inf",
               .kind = CallKind::inference,
               .role = "ref",
               .reads = pairs,
               .writes = {"chosen_ref_logprobs", "rejected_ref_logprobs"},
               .fn = "logprobs",
               .renames = {{"chosen_ref_logprobs", "chosen_logprobs"},
                           {"rejected_ref_logprobs", "rejected_logprobs"}}};
  train.reads.insert(train.reads.end(), ref_inf.writes.begin(),
                     ref_inf.writes.end());
  dpo.calls = {std::move(ref_inf), std::move(train)};
  return dpo;
}

} // namespace troupe::plans
