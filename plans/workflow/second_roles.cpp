#include "plans/workflow/second_roles.hpp"

#include "plans/plan/plan_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

/// Returns why the role cannot speak beside the call's own; empty: it can.
std::string why_not_speaking(const Workflow& workflow, const Call& call,
                             const std::string& name) {
  const auto* role = workflow.find_role(name);
  if (role == nullptr) {
    std::vector<std::string> known;
    for (const auto& one : workflow.roles)
      known.push_back(one.name);
    return "is no role" + nearest_hint(name, known);
  }
  if (name == call.role)
    return "is the call's own role; try a frozen role like it";
  if (std::ranges::count(call.by.with, name) > 1)
    return "is there twice";
  if (role->trained)
    return "is trained, and only a frozen role speaks beside another; try a "
           "frozen role like it";
  if (role->ema)
    return fmt::format("follows {}, so its weights change, and only a frozen "
                       "role speaks beside another; try one that follows none",
                       role->ema->role);
  if (role->scalar_head)
    return "has a scalar head, which says nothing; try a role without";
  return "";
}

} // namespace

bool is_second_role(const Workflow& workflow, std::string_view role) {
  return std::ranges::any_of(workflow.calls, [&](const Call& call) {
    return std::ranges::find(call.by.with, role) != call.by.with.end();
  });
}

std::string why_not_with(const Workflow& workflow, const Call& call) {
  if (call.by.with.empty())
    return "";
  if (call.kind != CallKind::generate || !call.by.user_actor)
    return fmt::format("call {} has other models in its conversations (with), "
                       "which nobody leads; try an actor or a Python function "
                       "(fn), or agents.command",
                       call.name);
  for (const auto& role : call.by.with)
    if (const auto why = why_not_speaking(workflow, call, role); !why.empty())
      return fmt::format("call {} has '{}' in its conversations (with), which "
                         "{}",
                         call.name, role, why);
  return "";
}

} // namespace troupe::plans
