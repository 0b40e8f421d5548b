#include "plans/cost/plan_problem.hpp"

#include "plans/check/planned_memory.hpp"
#include "plans/presets/presets.hpp"
#include "plans/workflow/frozen_roles.hpp"

#include <algorithm>

namespace troupe::plans {

std::uint64_t PlanProblem::device_memory_bytes() const {
  return usable_bytes(hardware);
}

DType PlanProblem::dtype(const std::string& role) const {
  const auto found = dtypes.find(role);
  return found == dtypes.end() ? DType::f32 : found->second;
}

StoredTypes PlanProblem::stored(const std::string& role) const {
  return stored_types(sizes.engine.storage, dtype(role));
}

WeightPlanes PlanProblem::planes(const std::string& role) const {
  return weight_planes(sizes.engine.storage, dtype(role),
                       weights_of_role(workflow, role));
}

namespace {

void set_memory(Hardware& hardware, const Settings& settings,
                std::uint64_t device_bytes) {
  const auto reserve = device_bytes - usable_bytes(settings, device_bytes);
  hardware.mem_bytes = static_cast<double>(device_bytes);
  hardware.reserve_bytes
    = std::max(hardware.reserve_bytes, static_cast<double>(reserve));
}

} // namespace

void apply_settings(PlanProblem& problem, const Settings& settings,
                    std::uint64_t device_bytes) {
  auto& hardware = problem.hardware;
  set_memory(hardware, settings, device_bytes);
  for (auto& kind : hardware.kinds)
    set_memory(kind.hardware, settings,
               static_cast<std::uint64_t>(kind.hardware.mem_bytes));
  hardware.update();
  const auto context
    = make_check_context(settings, problem.workflow, {}, device_bytes);
  problem.dtypes = context.dtypes;
  problem.sizes = context.sizes;
  problem.rules.corrects_for_lag = context.corrects_for_lag;
  problem.rules.servers = context.servers;
  problem.rules.balanced_roles = context.balanced_roles;
  problem.evaluation = context.evaluation;
}

CheckContext check_context(const PlanProblem& problem,
                           const ExecutionPlan& plan) {
  CheckContext context{.workflow = problem.workflow,
                       .plan = plan,
                       .sizes = problem.sizes,
                       .shapes = problem.shapes,
                       .dtypes = problem.dtypes,
                       .corrects_for_lag = problem.rules.corrects_for_lag,
                       .evaluation = problem.evaluation,
                       .servers = problem.rules.servers,
                       .balanced_roles = problem.rules.balanced_roles};
  if (const auto bytes = problem.device_memory_bytes(); bytes > 0)
    context.device_memory_bytes = bytes;
  context.host_memory_bytes
    = static_cast<std::uint64_t>(problem.hardware.host_mem_bytes);
  if (problem.hardware.is_mixed())
    for (std::uint32_t node = 0; node < plan.cluster.nodes; ++node) {
      const auto& hardware = problem.hardware.of_node(node);
      context.nodes.push_back(
        {hardware.name, usable_bytes(hardware),
         static_cast<std::uint64_t>(hardware.host_mem_bytes)});
    }
  return context;
}

PlanReport check_plan(const PlanProblem& problem, const ExecutionPlan& plan) {
  return check_plan(check_context(problem, plan));
}

ExecutionPlan with_rooms(const PlanProblem& problem,
                         const ExecutionPlan& plan) {
  if (!problem.sizes.cache_adapts)
    return plan;
  const auto context = check_context(problem, plan);
  const auto replicas = replicas_of(problem.workflow, plan);
  return with_rooms(plan, planned_memory(context, replicas).rooms);
}

namespace {

/// Restores the micro-batches of `whole` in each call of `plan` where memory
/// allows: sharded parameters are gathered once per micro-batch.
ExecutionPlan with_larger_micro_batches(const PlanProblem& problem,
                                        ExecutionPlan plan,
                                        const ExecutionPlan& whole) {
  for (const auto& call : problem.workflow.calls) {
    auto& tokens = plan.calls[call.name].micro_batch_tokens;
    const auto small = tokens;
    tokens = whole.calls.at(call.name).micro_batch_tokens;
    if (tokens != small && !check_plan(problem, plan).ok())
      tokens = small;
  }
  return plan;
}

} // namespace

ExecutionPlan fitted_preset(const std::string& name,
                            const PlanProblem& problem) {
  constexpr std::int64_t smaller_tokens[] = {8192, 2048, 512};
  PresetFacts facts{.shapes = problem.shapes,
                    .device_memory_bytes = problem.device_memory_bytes()};
  for (const auto& [role, type] : problem.dtypes) {
    const auto planes = problem.planes(role);
    const auto second = planes.rounded ? size_bytes(*planes.rounded) : 0;
    if (planes.has_no_masters)
      continue; // those need the least
    facts.weight_element_bytes = size_bytes(planes.stored) + second;
    facts.copy_element_bytes
      = problem.sizes.engine.packs_weights && second == 0
          ? size_bytes(problem.sizes.engine.packed_type(type))
          : 0;
  }
  const auto whole = preset(name, problem.workflow, problem.cluster, facts);
  if (check_plan(problem, whole).ok())
    return whole;
  for (const auto tokens : smaller_tokens) {
    auto plan = whole;
    for (const auto& call : problem.workflow.calls)
      if (call.kind == CallKind::train || call.kind == CallKind::inference)
        plan.calls[call.name].micro_batch_tokens = tokens;
    if (check_plan(problem, plan).ok())
      return with_larger_micro_batches(problem, std::move(plan), whole);
  }
  return whole;
}

} // namespace troupe::plans
