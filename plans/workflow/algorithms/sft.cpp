// Supervised fine-tuning: one role, one call, both keys from the data set.
#include "plans/workflow/workflow.hpp"

namespace troupe::plans {

Workflow sft_workflow(const Settings&) {
  return {
    .name = "sft",
    .roles = {{.name = "actor", .trained = true}},
    .calls = {{.name = "actor_train",
               .kind = CallKind::train,
               .role = "actor",
               .reads = {"sequence_ids", "loss_mask"},
               .fn = "sft_loss"}},
    .dataset_keys = {"sequence_ids", "loss_mask"},
  };
}

} // namespace troupe::plans
