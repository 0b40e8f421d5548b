// What `plan compare` prints: a row for each plan, as a table or as JSON, and
// how far a suite's predictions are from what was measured.
#pragma once

#include "plans/execution_plan.hpp"
#include "runtime/verbs/plan_measure.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

struct CompareRow {
  std::string workload;
  std::string plan;
  bool own = false;        ///< the plan of the settings
  std::string reason = {}; ///< why it does not fit; empty: it fits
  double step_s = 0;
  double pflops = 0; ///< PFLOP/s as ReaL counts them
  double tokens_per_s_device = 0;
  double idle_share = 0;
  std::uint64_t peak_bytes = 0;
  std::string peak_task = {};
  double moved_bytes = 0;
  std::optional<double> measured_s = {};
  std::optional<PlanCosts> measured = {}; ///< here
  std::optional<plans::ExecutionPlan> fitted = {};

  std::optional<double> error() const {
    return measured_s && reason.empty()
             ? std::optional(step_s / *measured_s - 1)
             : std::nullopt;
  }
};

std::string compare_json(const std::vector<CompareRow>& rows);
/// With the reasons of those that do not fit behind it.
std::string compare_table(const std::vector<CompareRow>& rows);
/// Of a suite: mean absolute errors by plan, and of megatron over search.
std::string error_summary(const std::vector<CompareRow>& rows);

} // namespace troupe::runtime
