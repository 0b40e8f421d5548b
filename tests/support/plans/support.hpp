// Shared by the tests of plans: workflows and plans in one line each.
#pragma once

#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/schedule/step_graph.hpp"
#include "plans/weights/replicas.hpp"
#include "plans/workflow/workflow.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe::plans {

/// Returns the message that a user gets for the mistake in `attempt`;
/// "accepted" if there is none.
template <class Attempt>
std::string refusal_of(Attempt attempt) {
  try {
    attempt();
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const PlanError& error) {
    return error.what();
  }
  return "accepted";
}

inline Workflow make_ppo(const std::function<void(Settings&)>& change = {}) {
  Settings settings;
  settings.workflow = "ppo";
  if (change)
    change(settings);
  return ppo_workflow(settings);
}

/// Returns the message for making PPO of changed settings.
inline std::string
settings_refusal(const std::function<void(Settings&)>& change) {
  Settings settings;
  settings.workflow = "ppo";
  change(settings);
  return refusal_of([&] { make_workflow(settings); });
}

inline Workflow make_grpo(const std::function<void(Settings&)>& change = {}) {
  Settings settings;
  settings.workflow = "grpo";
  settings.algorithm.advantage = "group";
  settings.algorithm.kl_in = "loss";
  if (change)
    change(settings);
  return make_workflow(settings);
}

/// Returns PPO whose samples programs lead, who ask an opponent too.
inline Workflow make_ppo_with_opponent() {
  return make_ppo([](Settings& settings) {
    settings.reward.kind = "rule";
    settings.rollout.engine.agents.command = "run";
    settings.rollout.engine.agents.with = {"opponent"};
  });
}

inline std::vector<Rank> ranks(std::uint32_t first, std::uint32_t last) {
  std::vector<Rank> devices;
  for (auto rank = first; rank <= last; ++rank)
    devices.emplace_back(rank);
  return devices;
}

/// Returns data parallelism over the devices [first, last], including `last`.
inline Placement on(std::uint32_t first, std::uint32_t last) {
  return {.devices = ranks(first, last), .strategy = {.dp = last - first + 1}};
}

/// Returns a plan with every call of a role at `placement`, functions on the
/// host.
inline ExecutionPlan plan_all(const Workflow& workflow,
                              const Placement& placement,
                              std::uint32_t devices) {
  ExecutionPlan plan;
  plan.cluster.devices_per_node = devices;
  for (const auto& call : workflow.calls)
    plan.calls[call.name]
      = call.kind == CallKind::function ? Placement{} : placement;
  return plan;
}

/// Returns PPO on 4 devices: generation and scoring on 0-1, training on 2-3.
inline ExecutionPlan plan_apart(const Workflow& ppo) {
  auto plan = plan_all(ppo, on(0, 1), 4);
  plan.calls["actor_train"] = on(2, 3);
  plan.calls["critic_inf"] = on(2, 3);
  plan.calls["critic_train"] = on(2, 3);
  return plan;
}

inline StepGraph graph_of(const Workflow& workflow, const ExecutionPlan& plan) {
  return make_step_graph(workflow, plan, replicas_of(workflow, plan));
}

} // namespace troupe::plans
