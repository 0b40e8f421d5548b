// Second models in conversations: frozen roles, as an opponent or a judge, that
// a call has beside its own (`with`). Their replicas are on the call's devices
// in its strategy, all models generate on one device thread, and what second
// ones say is not trained on (docs/agents.md).
#pragma once

#include "plans/workflow/workflow.hpp"

namespace troupe::plans {

/// Returns whether a call has the role beside its own.
bool is_second_role(const Workflow& workflow, std::string_view role);

/// Returns why the call cannot have its second roles, a sentence that begins
/// with "call"; empty: it can.
std::string why_not_with(const Workflow& workflow, const Call& call);

} // namespace troupe::plans
