// Reward model from preference pairs: a scalar head and the pairwise loss.
#include "plans/workflow/workflow.hpp"

namespace troupe::plans {

Workflow reward_workflow(const Settings&) {
  return {
    .name = "reward",
    .roles = {{.name = "reward", .trained = true, .scalar_head = true}},
    .calls = {{.name = "reward_train",
               .kind = CallKind::train,
               .role = "reward",
               .reads = {"chosen_ids", "rejected_ids"},
               .fn = "reward_loss"}},
    .dataset_keys = {"chosen_ids", "rejected_ids"},
  };
}

} // namespace troupe::plans
