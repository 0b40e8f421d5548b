// A workload of examples/paper as a planning problem, like the suite of `plan
// compare`: 16 bits, recomputation, passes that fill a GPU.
#pragma once

#include "config/settings/settings.hpp"
#include "plans/cost/plan_problem.hpp"
#include "plans/simulate/published_plans.hpp"

#include <filesystem>

namespace troupe::bench {

inline plans::PlanProblem paper_problem(const std::filesystem::path& file,
                                        const plans::Hardware& hardware) {
  auto settings = load_settings({file.string()}, {});
  settings.cluster.device = "gpu";
  plans::PlanProblem problem;
  problem.hardware = hardware;
  problem.workflow = plans::make_workflow(settings);
  for (const auto& role : problem.workflow.roles) {
    auto shape = read_model_shape(settings.models.at(role.name).path);
    shape.scalar_head = role.scalar_head;
    problem.shapes[role.name] = shape;
    problem.dtypes[role.name] = DType::bf16;
  }
  problem.cluster
    = {.nodes = static_cast<std::uint32_t>(settings.cluster.nodes.value_or(1)),
       .devices_per_node = 8};
  problem.sizes = plans::published_sizes(
    plans::make_check_context(settings, problem.workflow, {}).sizes, settings);
  problem.lengths = plans::Lengths(settings.data.max_prompt_tokens,
                                   settings.rollout.max_new_tokens,
                                   settings.rollout.max_new_tokens);
  return problem;
}

} // namespace troupe::bench
