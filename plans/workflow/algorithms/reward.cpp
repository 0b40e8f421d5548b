// Reward model from preference pairs: a scalar head and the pairwise loss,
// which reads margins where rows have them.
#include "config/settings/settings.hpp"
#include "plans/workflow/workflow.hpp"

namespace troupe::plans {

Workflow reward_workflow(const Settings& settings) {
  Workflow reward{
    .name = "reward",
    .roles = {{.name = "reward", .trained = true, .scalar_head = true}},
    .calls = {{.name = "reward_train",
               .kind = CallKind::train,
               .role = "reward",
               .reads = {"chosen_ids", "rejected_ids"},
               .fn = "reward_loss"}},
    .dataset_keys = {"chosen_ids", "rejected_ids"},
  };
  if (has_margin(settings)) {
    reward.calls.front().reads.emplace_back("pair_margin");
    reward.dataset_keys.emplace_back("pair_margin");
  }
  return reward;
}

} // namespace troupe::plans
