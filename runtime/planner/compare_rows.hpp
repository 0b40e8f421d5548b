// Output of `plan compare`: rows of plans as a table and as JSON.
#pragma once

#include "plans/cost/cluster_hardware.hpp"
#include "plans/plan/execution_plan.hpp"
#include "runtime/planner/plan_costs.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

struct CompareRow {
  std::string workload;
  std::string plan;
  bool own = false;        ///< whether it is the plan of the settings
  std::string reason = {}; ///< why it does not fit; empty: it fits
  double step_s = 0;
  double pflops = 0; ///< PFLOP/s as ReaL counts them
  double tokens_per_s_device = 0;
  double idle_share = 0;
  std::uint64_t peak_bytes = 0;
  std::string peak_task = {};
  double moved_bytes = 0;
  std::optional<double> measured_s = {};
  std::optional<PlanCosts> measured = {}; ///< on this machine
  std::optional<plans::ExecutionPlan> fitted = {};
  /// Its seconds divided by those of the workload's searched plan.
  std::optional<double> over_search = {};
  std::optional<double> measured_over_search = {};

  bool fits() const {
    return reason.empty();
  }
  std::optional<double> error() const {
    return measured_s && fits() ? std::optional(step_s / *measured_s - 1)
                                : std::nullopt;
  }
  /// Returns the rate of the same work in the measured time.
  std::optional<double> measured_pflops() const {
    return measured_s && fits() ? std::optional(pflops * step_s / *measured_s)
                                : std::nullopt;
  }
};

/// Fills in `over_search` and `measured_over_search`.
void compare_with_search(std::vector<CompareRow>& rows);

std::string compare_json(const std::vector<CompareRow>& rows,
                         const plans::ClusterHardware& hardware);
/// Kind of table: a suite has published numbers, a config may have runs of its
/// own.
enum class CompareTable { of_config, of_suite };
std::string compare_table(const std::vector<CompareRow>& rows,
                          CompareTable kind);
/// Returns the mean absolute errors of a suite, by plan, and of megatron over
/// search.
std::string error_summary(const std::vector<CompareRow>& rows);

} // namespace troupe::runtime
