#include "runtime/planner/replay_report.hpp"

#include "plans/cost/hardware_sources.hpp"
#include "runtime/base/human_text.hpp"
#include "runtime/base/text_table.hpp"
#include "runtime/planner/plan_basis.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

/// Reasons of idle time that a person is told.
constexpr std::size_t most_reasons = 3;

/// Returns "+12 %" for what takes longer than was measured.
std::string change_text(double seconds, double measured_s) {
  if (measured_s <= 0)
    return "";
  return fmt::format("{:+.0f} %", 100 * (seconds / measured_s - 1));
}

std::string steps_table(const ReplayReport& report) {
  TextTable table({"", "> s a step", "> s of the run", "> to measured"});
  const auto measured_s = report.mean_s(&ReplayedStep::measured_s);
  const auto add = [&](const std::string& what, double ReplayedStep::*part) {
    const auto mean = report.mean_s(part);
    table.row(
      {what, three_digits(mean), three_digits(mean * report.steps_of_run),
       part == &ReplayedStep::measured_s ? "" : change_text(mean, measured_s)});
  };
  add("measured", &ReplayedStep::measured_s);
  add("predicted, nothing measured", &ReplayedStep::predicted_s);
  add("same plan, measured costs", &ReplayedStep::fitted_s);
  add(report.other.name + ", measured costs", &ReplayedStep::other_s);
  return table.print(2);
}

std::string phases_table(const ReplayReport& report) {
  TextTable table({"seconds of", "> measured", "> predicted", "> error",
                   "> " + report.other.name});
  for (const auto& phase : report.phases)
    table.row({phase.name, three_digits(phase.measured_s),
               three_digits(phase.predicted_s),
               change_text(phase.predicted_s, phase.measured_s),
               three_digits(phase.other_s)});
  return table.print(2);
}

/// Returns where devices waited and what would remove it, in sentences.
std::string why_slow(const ReplayReport& report) {
  const auto step_s = report.mean_s(&ReplayedStep::measured_s);
  if (report.idle.empty() || step_s <= 0)
    return "Devices did not wait.\n";
  std::string text = "Why it is not faster: a device waits per step\n";
  for (std::size_t i = 0; i < std::min(most_reasons, report.idle.size()); ++i) {
    const auto& reason = report.idle[i];
    text
      += fmt::format("  {} s ({:.0f} %) for {};\n    {} would remove it\n",
                     three_digits(reason.seconds),
                     100 * reason.seconds / step_s, reason.what, reason.remedy);
  }
  return text;
}

/// Says what the other plan would have saved, less the error of the same
/// method on the plan that ran.
std::string verdict(const ReplayReport& report) {
  const auto fitted_s = report.mean_s(&ReplayedStep::fitted_s);
  const auto other_s = report.mean_s(&ReplayedStep::other_s);
  if (fitted_s <= 0)
    return "";
  const auto change = 100 * (other_s / fitted_s - 1);
  if (std::abs(change) < 1)
    return fmt::format("{} would have taken as long.\n", report.other.name);
  return fmt::format("{} would have taken {:.0f} % {} (measured costs, both "
                     "simulated).\n",
                     report.other.name, std::abs(change),
                     change < 0 ? "less" : "more");
}

/// Returns the plan that a search found; others the user has.
std::string found_plan(const ReplayReport& report) {
  return report.other.is_found ? "\n" + plans::print(report.other.plan) + "\n"
                               : "";
}

} // namespace

double ReplayReport::mean_s(double ReplayedStep::*seconds) const {
  double sum = 0;
  for (const auto& step : steps)
    sum += step.*seconds;
  return steps.empty() ? 0 : sum / double(steps.size());
}

std::string replay_text(const ReplayReport& report) {
  auto text = fmt::format(
    "run {}: {} on {} devices, plan {}; {} steps, without the "
    "first, which warms up\n",
    report.run, report.workflow, report.own.plan.cluster.num_devices(),
    report.own.name, report.steps_of_run);
  if (report.steps.size() < report.steps_of_run)
    text += fmt::format("{} of them, evenly spaced, are simulated\n",
                        report.steps.size());
  return text + "\n" + steps_table(report) + "\n" + phases_table(report) + "\n"
         + why_slow(report) + verdict(report) + found_plan(report)
         + plans::basis_of(report.hardware);
}

std::string replay_json(const ReplayReport& report) {
  auto steps = Json::array();
  for (const auto& step : report.steps)
    steps.push_back({{"step", step.step},
                     {"measured_s", step.measured_s},
                     {"predicted_s", step.predicted_s},
                     {"fitted_s", step.fitted_s},
                     {"other_s", step.other_s}});
  auto phases = Json::array();
  for (const auto& phase : report.phases)
    phases.push_back({{"name", phase.name},
                      {"measured_s", phase.measured_s},
                      {"predicted_s", phase.predicted_s},
                      {"other_s", phase.other_s}});
  auto idle = Json::array();
  for (const auto& reason : report.idle)
    idle.push_back({{"seconds", reason.seconds},
                    {"waits_for", reason.what},
                    {"remedy", reason.remedy}});
  const auto plan_json = [](const ReplayedPlan& plan) {
    return Json{{"name", plan.name}, {"plan", plans::print(plan.plan)}};
  };
  return Json{{"run", report.run},
              {"workflow", report.workflow},
              {"steps_of_run", report.steps_of_run},
              {"own", plan_json(report.own)},
              {"other", plan_json(report.other)},
              {"measured_s", report.mean_s(&ReplayedStep::measured_s)},
              {"predicted_s", report.mean_s(&ReplayedStep::predicted_s)},
              {"fitted_s", report.mean_s(&ReplayedStep::fitted_s)},
              {"other_s", report.mean_s(&ReplayedStep::other_s)},
              {"steps", std::move(steps)},
              {"phases", std::move(phases)},
              {"idle", std::move(idle)},
              {"basis", basis_json(report.hardware)}}
    .dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

} // namespace troupe::runtime
