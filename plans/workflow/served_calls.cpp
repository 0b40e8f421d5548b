#include "plans/workflow/served_calls.hpp"

#include "config/settings/settings.hpp"

namespace troupe::plans {

void set_servers(const Settings& settings, Workflow& workflow) {
  if (settings.rollout.engine.is_own() || !settings.run.replay.empty())
    return;
  for (auto& call : workflow.calls)
    call.by.servers = call.kind == CallKind::generate && !call.evaluates;
}

bool has_server_update(const Workflow& workflow, const Call& call) {
  return call.kind == CallKind::generate && call.by.servers && !call.evaluates
         && workflow.role(call.role).changes();
}

} // namespace troupe::plans
