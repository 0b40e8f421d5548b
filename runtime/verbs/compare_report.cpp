#include "runtime/verbs/compare_report.hpp"

#include "runtime/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <map>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

/// A measured number times `scale`; empty if there is none.
std::string measured_text(const CompareRow& row, double scale,
                          const char* format, double PlanCosts::*what) {
  return row.measured
           ? fmt::format(fmt::runtime(format), scale * ((*row.measured).*what))
           : "";
}

const CompareRow* row_of(const std::vector<CompareRow>& rows,
                         const std::string& workload, const std::string& plan) {
  for (const auto& row : rows)
    if (row.workload == workload && row.plan == plan && row.measured_s
        && row.reason.empty())
      return &row;
  return nullptr;
}

} // namespace

std::string compare_json(const std::vector<CompareRow>& rows) {
  auto list = Json::array();
  const auto optional_number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  const auto measured = [](const CompareRow& row, double PlanCosts::*what) {
    return row.measured ? Json((*row.measured).*what) : Json(nullptr);
  };
  for (const auto& row : rows)
    list.push_back(
      {{"workload", row.workload},
       {"plan", row.plan},
       {"own", row.own},
       {"fits", row.reason.empty()},
       {"reason", row.reason},
       {"step_s", row.reason.empty() ? Json(row.step_s) : Json()},
       {"pflops", row.reason.empty() ? Json(row.pflops) : Json()},
       {"tokens_per_s_device", row.tokens_per_s_device},
       {"idle_share", row.idle_share},
       {"peak_bytes", row.peak_bytes},
       {"peak_task", row.peak_task},
       {"moved_bytes", row.moved_bytes},
       {"measured_s", optional_number(row.measured_s)},
       {"error", optional_number(row.error())},
       {"measured_idle_share", measured(row, &PlanCosts::idle_share)},
       {"measured_moved_bytes", measured(row, &PlanCosts::moved_bytes)},
       {"measured_peak_bytes", measured(row, &PlanCosts::peak_bytes)},
       {"measured_process_bytes", measured(row, &PlanCosts::process_bytes)}});
  return Json{{"rows", std::move(list)}}.dump(2, ' ', false,
                                              Json::error_handler_t::replace);
}

std::string compare_table(const std::vector<CompareRow>& rows) {
  TextTable table({"workload", "plan", "> s/step", "> PFLOP/s",
                   "> tok/s/device", "> idle", "> peak GB", "at", "> moved GB",
                   "> measured s", "> error", "> its idle", "> its moved GB",
                   "> its peak GB", "> process GB"});
  std::string reasons;
  for (const auto& row : rows) {
    const auto plan = row.plan + (row.own ? " (own)" : "");
    if (!row.reason.empty()) {
      table.row({row.workload, plan, "-"});
      reasons += fmt::format("{} {}: {}\n", row.workload, row.plan, row.reason);
      continue;
    }
    table.row({row.workload, plan, fmt::format("{:.4g}", row.step_s),
               fmt::format("{:.3g}", row.pflops),
               fmt::format("{:.0f}", row.tokens_per_s_device),
               fmt::format("{:.0f} %", 100 * row.idle_share),
               fmt::format("{:.3g}", double(row.peak_bytes) / 1e9),
               row.peak_task, fmt::format("{:.3g}", row.moved_bytes / 1e9),
               row.measured_s ? fmt::format("{:.4g}", *row.measured_s) : "",
               row.error() ? fmt::format("{:+.0f} %", 100 * *row.error()) : "",
               measured_text(row, 100, "{:.0f} %", &PlanCosts::idle_share),
               measured_text(row, 1e-9, "{:.3g}", &PlanCosts::moved_bytes),
               measured_text(row, 1e-9, "{:.3g}", &PlanCosts::peak_bytes),
               measured_text(row, 1e-9, "{:.3g}", &PlanCosts::process_bytes)});
  }
  return table.print() + reasons;
}

std::string error_summary(const std::vector<CompareRow>& rows) {
  std::map<std::string, std::vector<double>> errors;
  for (const auto& row : rows) {
    if (row.error())
      errors[row.plan].push_back(std::abs(*row.error()));
    const auto* heuristic = row_of(rows, row.workload, "megatron");
    if (row.plan != "search" || !row.error() || !heuristic)
      continue;
    const auto ratio = heuristic->step_s / row.step_s;
    const auto measured = *heuristic->measured_s / *row.measured_s;
    errors["megatron/search"].push_back(std::abs(ratio / measured - 1));
  }
  std::string text;
  for (const auto& [name, all] : errors) {
    double sum = 0;
    for (const auto error : all)
      sum += error;
    text += fmt::format("mean absolute error of {}: {:.1f} % of {} rows\n",
                        name, 100 * sum / double(all.size()), all.size());
  }
  return text;
}

} // namespace troupe::runtime
