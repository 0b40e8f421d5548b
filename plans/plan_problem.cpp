#include "plans/plan_problem.hpp"

#include <algorithm>

namespace troupe::plans {

std::uint64_t PlanProblem::device_memory_bytes() const {
  return static_cast<std::uint64_t>(
    std::max(0.0, hardware.mem_bytes - hardware.reserve_bytes));
}

DType PlanProblem::dtype(const std::string& role) const {
  const auto found = dtypes.find(role);
  return found == dtypes.end() ? DType::f32 : found->second;
}

PlanReport check_plan(const PlanProblem& problem, const ExecutionPlan& plan) {
  CheckContext context{.workflow = problem.workflow,
                       .plan = plan,
                       .sizes = problem.sizes,
                       .shapes = problem.shapes,
                       .dtypes = problem.dtypes,
                       .corrects_for_lag = problem.corrects_for_lag,
                       .for_run = problem.for_run};
  if (const auto bytes = problem.device_memory_bytes(); bytes > 0)
    context.device_memory_bytes = bytes;
  return check_plan(context);
}

} // namespace troupe::plans
