#include "runtime/planner/compare_rows.hpp"

#include "runtime/base/human_text.hpp"
#include "runtime/base/text_table.hpp"
#include "runtime/planner/plan_basis.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> measured_here(const CompareRow& row,
                                    double PlanCosts::*what) {
  return row.measured ? std::optional((*row.measured).*what) : std::nullopt;
}

struct CompareColumn {
  const char* title;
  std::function<std::string(const CompareRow&)> cell;
};

/// Returns a number times `scale` as text; empty if there is none.
std::string number_text(const std::optional<double>& value, double scale) {
  return value ? three_digits(scale * *value) : "";
}

std::string share_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.0f} %", 100 * *value) : "";
}

std::vector<CompareColumn> predicted_columns() {
  using Row = CompareRow;
  return {
    {">s/step", [](const Row& r) { return three_digits(r.step_s); }},
    {">PFLOP/s", [](const Row& r) { return three_digits(r.pflops); }},
    {">tok/s/device",
     [](const Row& r) { return three_digits(r.tokens_per_s_device); }},
    {">idle", [](const Row& r) { return share_text(r.idle_share); }},
    {">peak GB",
     [](const Row& r) { return three_digits(double(r.peak_bytes) / 1e9); }},
    {"at", [](const Row& r) { return r.peak_task; }},
    {">moved GB",
     [](const Row& r) { return three_digits(r.moved_bytes / 1e9); }},
    {">measured s", [](const Row& r) { return number_text(r.measured_s, 1); }},
    {">error", [](const Row& r) {
       return r.error() ? fmt::format("{:+.0f} %", 100 * *r.error()) : "";
     }}};
}

std::vector<CompareColumn> published_columns() {
  using Row = CompareRow;
  return {
    {">measured PFLOP/s",
     [](const Row& r) { return number_text(r.measured_pflops(), 1); }},
    {">/ search", [](const Row& r) { return number_text(r.over_search, 1); }},
    {">measured / search",
     [](const Row& r) { return number_text(r.measured_over_search, 1); }}};
}

std::vector<CompareColumn> measured_columns() {
  const auto column = [](const char* title, double PlanCosts::*what) {
    return CompareColumn{title, [what](const CompareRow& row) {
                           return number_text(measured_here(row, what), 1e-9);
                         }};
  };
  return {{">its idle",
           [](const CompareRow& row) {
             return share_text(measured_here(row, &PlanCosts::idle_share));
           }},
          column(">its moved GB", &PlanCosts::moved_bytes),
          column(">its peak GB", &PlanCosts::peak_bytes),
          column(">process GB", &PlanCosts::process_bytes)};
}

/// Returns whether a column is empty in all rows and thus left out.
bool is_empty(const CompareColumn& column,
              const std::vector<CompareRow>& rows) {
  return std::ranges::all_of(rows, [&](const CompareRow& row) {
    return !row.fits() || column.cell(row).empty();
  });
}

} // namespace

void compare_with_search(std::vector<CompareRow>& rows) {
  std::map<std::string, const CompareRow*> searched;
  for (const auto& row : rows)
    if (row.plan == "search" && row.fits())
      searched[row.workload] = &row;
  for (auto& row : rows) {
    const auto best = searched.find(row.workload);
    if (best == searched.end() || !row.fits())
      continue;
    row.over_search = row.step_s / best->second->step_s;
    if (row.measured_s && best->second->measured_s)
      row.measured_over_search = *row.measured_s / *best->second->measured_s;
  }
}

std::string compare_json(const std::vector<CompareRow>& rows,
                         const plans::ClusterHardware& hardware) {
  auto list = Json::array();
  const auto measured = [](const CompareRow& row, double PlanCosts::*what) {
    return optional_json(measured_here(row, what));
  };
  for (const auto& row : rows)
    list.push_back(
      {{"workload", row.workload},
       {"plan", row.plan},
       {"own", row.own},
       {"fits", row.fits()},
       {"reason", row.reason},
       {"step_s", row.fits() ? Json(row.step_s) : Json()},
       {"pflops", row.fits() ? Json(row.pflops) : Json()},
       {"tokens_per_s_device", row.tokens_per_s_device},
       {"idle_share", row.idle_share},
       {"peak_bytes", row.peak_bytes},
       {"peak_task", row.peak_task},
       {"moved_bytes", row.moved_bytes},
       {"measured_s", optional_json(row.measured_s)},
       {"error", optional_json(row.error())},
       {"measured_pflops", optional_json(row.measured_pflops())},
       {"over_search", optional_json(row.over_search)},
       {"measured_over_search", optional_json(row.measured_over_search)},
       {"measured_idle_share", measured(row, &PlanCosts::idle_share)},
       {"measured_moved_bytes", measured(row, &PlanCosts::moved_bytes)},
       {"measured_peak_bytes", measured(row, &PlanCosts::peak_bytes)},
       {"measured_process_bytes", measured(row, &PlanCosts::process_bytes)}});
  return Json{{"basis", basis_json(hardware)}, {"rows", std::move(list)}}.dump(
    2, ' ', false, Json::error_handler_t::replace);
}

std::string compare_table(const std::vector<CompareRow>& rows,
                          CompareTable kind) {
  auto columns = predicted_columns();
  for (auto& column : kind == CompareTable::of_suite ? published_columns()
                                                     : measured_columns())
    columns.push_back(column);
  std::erase_if(columns,
                [&](const auto& column) { return is_empty(column, rows); });
  const bool one_workload = kind == CompareTable::of_config;
  std::vector<std::string> titles = {"plan"};
  if (!one_workload)
    titles.insert(titles.begin(), "workload");
  for (const auto& column : columns)
    titles.emplace_back(column.title);
  TextTable table(titles);
  std::string reasons;
  for (const auto& row : rows) {
    std::vector<std::string> cells = {row.plan + (row.own ? " (own)" : "")};
    if (!one_workload)
      cells.insert(cells.begin(), row.workload);
    if (row.fits()) {
      for (const auto& column : columns)
        cells.push_back(column.cell(row));
    } else {
      cells.emplace_back("-");
      reasons += fmt::format("{}{}{}: {}\n", one_workload ? "" : row.workload,
                             one_workload ? "" : " ", row.plan, row.reason);
    }
    table.row(std::move(cells));
  }
  return table.print() + reasons;
}

std::string error_summary(const std::vector<CompareRow>& rows) {
  std::map<std::string, std::vector<double>> errors;
  for (const auto& row : rows) {
    if (row.error())
      errors[row.plan].push_back(std::abs(*row.error()));
    if (row.plan == "megatron" && row.measured_over_search)
      errors["megatron/search"].push_back(
        std::abs(*row.over_search / *row.measured_over_search - 1));
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
