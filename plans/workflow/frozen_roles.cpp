#include "plans/workflow/frozen_roles.hpp"

#include <algorithm>

namespace troupe::plans {

RoleWeights weights_of_role(const Workflow& workflow, std::string_view role) {
  const auto sends_weights
    = [&](const Call& call) { return call.role == role && call.by.servers; };
  const Role* const found = workflow.find_role(role);
  const bool are_frozen
    = found != nullptr && !found->changes() && !found->changes_elsewhere
      && std::ranges::none_of(workflow.calls, sends_weights);
  return are_frozen ? RoleWeights::frozen : RoleWeights::changing;
}

} // namespace troupe::plans
