#include "runtime/planner/phase_names.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe::runtime {

namespace {

struct SharedPhase {
  plans::CallKind kind;
  std::string_view who; ///< role or fn of its calls
  const char* phase;
};

/// Phases that calls of several workflows share. Any other call is a phase by
/// itself.
constexpr std::array shared_phases{
  SharedPhase{plans::CallKind::generate, "actor", "gen"},
  SharedPhase{plans::CallKind::inference, "actor", "old_log_prob"},
  SharedPhase{plans::CallKind::inference, "critic", "values"},
  SharedPhase{plans::CallKind::inference, "ref", "ref"},
  SharedPhase{plans::CallKind::inference, "reward", "reward"},
  SharedPhase{plans::CallKind::train, "actor", "update_actor"},
  SharedPhase{plans::CallKind::train, "critic", "update_critic"},
  SharedPhase{plans::CallKind::train, "reward_loss", "update_actor"},
  SharedPhase{plans::CallKind::function, "rewards", "reward"},
  SharedPhase{plans::CallKind::function, "ppo_advantages", "adv"},
  SharedPhase{plans::CallKind::function, "group_advantages", "adv"},
};

} // namespace

std::string phase_of(const plans::Workflow& workflow, const std::string& name) {
  const auto* call = workflow.find_call(name);
  if (call == nullptr)
    return move_phase;
  const auto shared = std::ranges::find_if(shared_phases, [&](const auto& s) {
    return s.kind == call->kind && (s.who == call->role || s.who == call->fn);
  });
  return "timing_s/"
         + (shared == shared_phases.end() ? name : std::string(shared->phase));
}

} // namespace troupe::runtime
