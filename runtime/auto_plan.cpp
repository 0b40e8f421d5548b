#include "runtime/auto_plan.hpp"

#include "plans/plan_problem.hpp"
#include "plans/search.hpp"
#include "runtime/host_memory.hpp"
#include "runtime/profiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

bool has_cached_hardware() {
  const auto cached = cached_hardware_file();
  std::error_code ignored;
  return !cached.empty() && fs::exists(cached, ignored);
}

plans::PlanProblem run_problem(const Settings& settings,
                               const plans::Workflow& workflow,
                               const std::map<std::string, ModelShape>& shapes,
                               const plans::Cluster& cluster,
                               std::string& measured_by) {
  plans::PlanProblem problem;
  const auto cached = cached_hardware_file();
  const bool has_profile = has_cached_hardware();
  measured_by = has_profile ? cached.string() : "laptop";
  problem.hardware = plans::load_hardware(measured_by);
  if (has_profile)
    problem.profile = plans::load_profile(cached.string());
  // devices of a host share its memory
  if (const auto bytes = host_memory_bytes(); bytes > 0)
    problem.hardware.mem_bytes
      = static_cast<double>(bytes) / std::max(1u, cluster.devices_per_node);
  problem.workflow = workflow;
  problem.cluster = cluster;
  problem.shapes = shapes;
  const auto context = plans::make_check_context(settings, workflow, {});
  problem.sizes = context.sizes;
  problem.corrects_for_lag = context.corrects_for_lag;
  problem.evaluation = context.evaluation;
  const double longest = workflow.samples_are_prompts
                           ? settings.rollout.max_new_tokens
                           : settings.data.max_tokens;
  problem.lengths = plans::Lengths(
    workflow.samples_are_prompts ? settings.data.max_prompt_tokens : 0.0,
    longest, longest);
  problem.for_run = true;
  return problem;
}

} // namespace

std::optional<plans::PlanProblem>
profiled_problem(const Settings& settings, const plans::Workflow& workflow,
                 const std::map<std::string, ModelShape>& shapes,
                 const plans::Cluster& cluster) {
  std::string ignored;
  if (!has_cached_hardware())
    return std::nullopt;
  return run_problem(settings, workflow, shapes, cluster, ignored);
}

fs::path cached_hardware_file() {
  const auto* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0')
    return fs::path(cache) / "troupe" / "hardware.yaml";
  const auto* home = std::getenv("HOME");
  return home == nullptr || *home == '\0'
           ? fs::path{}
           : fs::path(home) / ".cache" / "troupe" / "hardware.yaml";
}

ChosenPlan search_for_run(const Settings& settings,
                          const plans::Workflow& workflow,
                          const std::map<std::string, ModelShape>& shapes,
                          const plans::Cluster& cluster) {
  std::string measured_by;
  const auto problem
    = run_problem(settings, workflow, shapes, cluster, measured_by);
  const plans::CostModel costs(problem);
  auto found = plans::search_plan(problem, costs, {});
  ChosenPlan chosen{.plan = std::move(found.best.plan),
                    .name = found.best.origin + " (chosen by auto)",
                    .why = {}};
  if (const auto warning = plans::of_another_machine(
        problem.hardware, measured_by, profiled_name());
      !warning.empty())
    chosen.why.push_back(warning);
  chosen.why.push_back(
    fmt::format("predicted on {}: {}", measured_by, plans::summary(found)));
  for (const auto& other : found.next)
    chosen.why.push_back(
      fmt::format("next best: {:.4g} s, {:.1f} % more ({})", other.step_s,
                  100 * (other.step_s / found.best.step_s - 1), other.origin));
  return chosen;
}

} // namespace troupe::runtime
