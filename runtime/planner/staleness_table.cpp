#include "runtime/planner/staleness_table.hpp"

#include "runtime/base/human_text.hpp"
#include "runtime/base/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

constexpr double seconds_per_hour = 3600;

/// Numbers of a staleness whose plan fits.
struct Rates {
  double step_s = 0;
  double steps_per_hour = 0;
  double tokens_per_s = 0;
  double gain = 0; ///< share of steps an hour more than without lag
};

Rates rates_of(const plans::Staleness& staleness,
               const plans::StalenessSearch& found,
               const plans::PlanProblem& problem) {
  const auto step_s = staleness.best->step_s;
  const auto tokens
    = problem.sizes.samples_per_step * problem.lengths.sequence_mean();
  return {.step_s = step_s,
          .steps_per_hour = seconds_per_hour / step_s,
          .tokens_per_s = tokens / step_s,
          .gain = found.tried.front().best->step_s / step_s - 1};
}

/// Returns "+16.0 %", and "+0.0 %" for what rounds to nothing from below too.
std::string gain_text(double gain) {
  return fmt::format("{:+.1f} %", std::round(1000 * gain) / 10 + 0.0);
}

/// Returns the largest lag of the chosen plan.
std::uint32_t chosen_steps(const plans::StalenessSearch& found) {
  const auto& plan = found.chosen.best.plan;
  std::uint32_t steps = 0;
  for (const auto& [call, placement] : plan.calls)
    steps = std::max(steps, plan.most_lag_of(call));
  return steps;
}

/// Returns the most slices of a call.
std::uint32_t most_slices(const plans::ExecutionPlan& plan) {
  std::uint32_t most = 1;
  for (const auto& [call, placement] : plan.calls)
    most = std::max(most, plan.slices_of(call));
  return most;
}

} // namespace

std::vector<std::string> staleness_lines(const plans::StalenessSearch& found,
                                         const plans::PlanProblem& problem) {
  if (found.tried.size() < 2)
    return {};
  TextTable table({">staleness", ">slices", ">s a step", ">steps an hour",
                   ">tok/s", ">gain", ""});
  for (const auto& staleness : found.tried) {
    if (!staleness.best) {
      table.row({std::to_string(staleness.steps), "", "no plan fits"});
      continue;
    }
    const auto rates = rates_of(staleness, found, problem);
    table.row({std::to_string(staleness.steps),
               std::to_string(most_slices(staleness.best->plan)),
               three_digits(rates.step_s), three_digits(rates.steps_per_hour),
               count_text(rates.tokens_per_s),
               staleness.steps == 0 ? "" : gain_text(rates.gain),
               staleness.steps == chosen_steps(found) ? "chosen" : ""});
  }
  std::vector<std::string> lines;
  std::istringstream text(table.print());
  for (std::string line; std::getline(text, line);)
    lines.push_back(line);
  return lines;
}

Json staleness_json(const plans::StalenessSearch& found,
                    const plans::PlanProblem& problem) {
  auto rows = Json::array();
  for (const auto& staleness : found.tried) {
    Json row
      = {{"steps", staleness.steps}, {"fits", staleness.best.has_value()}};
    for (const auto* key : {"slices", "step_s", "steps_per_hour",
                            "tokens_per_s", "gain", "lower_bound_s"})
      row[key] = nullptr;
    row["chosen"] = staleness.best && staleness.steps == chosen_steps(found);
    row["plan"] = nullptr;
    if (staleness.best) {
      const auto rates = rates_of(staleness, found, problem);
      row["slices"] = most_slices(staleness.best->plan);
      row["step_s"] = rates.step_s;
      row["steps_per_hour"] = rates.steps_per_hour;
      row["tokens_per_s"] = rates.tokens_per_s;
      row["gain"] = rates.gain;
      row["lower_bound_s"] = staleness.lower_bound_s;
      row["plan"] = plans::print(staleness.best->plan);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

} // namespace troupe::runtime
