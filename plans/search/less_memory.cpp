#include "plans/search/less_memory.hpp"

#include "config/base/error.hpp"
#include "plans/search/refined_plans.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

namespace troupe::plans {

namespace {

std::string offload_text(const ExecutionPlan& plan, const std::string& role) {
  const auto found = plan.roles.find(role);
  const auto memory = found == plan.roles.end() ? RoleMemory{} : found->second;
  std::vector<std::string_view> parts;
  if (memory.offload_weights)
    parts.emplace_back("weights");
  if (memory.offload_optimizer)
    parts.emplace_back("optimizer");
  return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string placement_text(const Placement& place) {
  auto text = fmt::format("{} on {}", to_string(place.strategy),
                          print_devices(place.devices));
  if (place.micro_batches > 0)
    text += fmt::format(" in {} micro-batches", place.micro_batches);
  if (place.chunks > 1)
    text += fmt::format(" in {} chunks", place.chunks);
  return text;
}

/// Compares `now` with `before`, both with the cache sizes that fit. The number
/// of responses decoded at once is that of a replica, so it is compared only
/// for equal strategies.
std::vector<std::string> changes_of(const Workflow& workflow,
                                    const ExecutionPlan& before,
                                    const ExecutionPlan& now) {
  std::vector<std::string> changes;
  const auto note = [&](const std::string& name, const std::string& text,
                        const std::string& old) {
    if (text != old)
      changes.push_back(fmt::format("{}: {}, not {}", name, text, old));
  };
  for (const auto& call : workflow.calls) {
    const auto& place = now.calls.at(call.name);
    const auto& old = before.calls.at(call.name);
    note(call.name, placement_text(place), placement_text(old));
    if (place.strategy == old.strategy && place.responses != old.responses)
      changes.push_back(fmt::format("{}: {} answers at once, not {}", call.name,
                                    place.responses, old.responses));
  }
  for (const auto& role : workflow.roles)
    note(role.name + " offloaded", offload_text(now, role.name),
         offload_text(before, role.name));
  return changes;
}

constexpr std::size_t most_changes_in_line = 2;

/// Returns the first of them, "and 3 more".
std::string few_changes(const std::vector<std::string>& changes) {
  const auto shown = std::min(changes.size(), most_changes_in_line);
  auto text
    = fmt::format("{}", fmt::join(std::span(changes).first(shown), "; "));
  if (changes.size() > shown)
    text += fmt::format(" and {} more", changes.size() - shown);
  return text;
}

} // namespace

std::optional<LessMemory> search_less_memory(const PlanProblem& problem,
                                             SearchOptions options,
                                             const FoundPlan& best) {
  if (problem.device_memory_bytes() == 0)
    return std::nullopt;
  auto smaller = problem;
  smaller.hardware.reserve_share(less_memory_share);
  LessMemory less;
  if (smaller.device_memory_bytes() == 0)
    return less;
  options.seconds *= less_memory_time_share;
  try {
    auto found = find_plan(smaller, CostModel(smaller), options);
    if (found.end == SearchEnd::interrupted)
      return std::nullopt;
    less.best = std::move(found.best);
  } catch (const PlanError&) {
    if (options.stop && options.stop->load())
      return std::nullopt;
    return less; // nothing fits, which the report states
  }
  less.more_s = std::max(0.0, less.best->step_s - best.step_s);
  less.changes = changes_of(problem.workflow, with_rooms(problem, best.plan),
                            with_rooms(smaller, less.best->plan));
  return less;
}

std::string less_memory_line(const LessMemory& less, double step_s) {
  constexpr double percent = 100;
  const auto name
    = fmt::format("{:.0f} % less memory", percent * less_memory_share);
  if (!less.best)
    return name + ": no plan fits";
  if (less.changes.empty())
    return name + ": the same plan";
  return fmt::format("{}: {:.4g} s, {:.1f} % more ({})", name,
                     step_s + less.more_s, percent * less.more_s / step_s,
                     few_changes(less.changes));
}

} // namespace troupe::plans
