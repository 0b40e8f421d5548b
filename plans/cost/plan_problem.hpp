// Everything that planning depends on, in one value: what is computed, on which
// devices, how long responses are, and what this machine can do. Cost model,
// simulator and search take one of these.
#pragma once

#include "plans/check/plan_check.hpp"
#include "plans/cost/cluster_hardware.hpp"
#include "plans/cost/measured_costs.hpp"
#include "plans/cost/profile_table.hpp"
#include "plans/memory/lengths.hpp"
#include "plans/workflow/workflow.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace troupe::plans {

/// Rules of the settings for plans, as in CheckContext.
struct PlanRules {
  bool corrects_for_lag = true;
  std::optional<std::size_t> servers = {};
  std::set<std::string> balanced_roles = {};
};

struct PlanProblem {
  Workflow workflow = {};
  Cluster cluster = {};
  std::map<std::string, ModelShape> shapes = {}; ///< by role, all of them
  std::map<std::string, DType> dtypes = {};      ///< by role; absent: f32
  BatchSizes sizes = {};
  Lengths lengths = {};
  ClusterHardware hardware = {};
  ProfileTable profile = {}; ///< where nodes are alike; empty: formulas only
  PlanRules rules = {};
  bool for_run = false; ///< on this host, whose memory its devices share
  Evaluation evaluation = {};
  MeasuredCosts measured = {}; ///< of a run; empty: predictions only

  /// Returns the bytes that a plan may use of each device, of the kind of node
  /// with least; 0: no limit known.
  std::uint64_t device_memory_bytes() const;
  DType dtype(const std::string& role) const; ///< of matrix products
  StoredTypes stored(const std::string& role) const;
  WeightPlanes planes(const std::string& role) const;
};

/// Fills in what follows from the settings on devices with `device_bytes` of
/// memory (0: not known): memory, sizes, dtypes, corrections and evaluation, as
/// in the check of a run. Workflow and hardware must be set; the larger of
/// the settings' reserve and the hardware's reserve stays free.
/// `cluster.device` must not be auto.
void apply_settings(PlanProblem& problem, const Settings& settings,
                    std::uint64_t device_bytes);

/// Returns what a plan of the problem is checked against. Holds references to
/// both.
CheckContext check_context(const PlanProblem& problem,
                           const ExecutionPlan& plan);
/// Returns the plan with the number of responses that each generation decodes
/// at once, which depends on the memory that the plan leaves free
/// (`with_rooms`).
ExecutionPlan with_rooms(const PlanProblem& problem, const ExecutionPlan& plan);

/// Checks a plan in this problem: its shapes, sizes and memory.
PlanReport check_plan(const PlanProblem& problem, const ExecutionPlan& plan);

/// Returns a preset in this problem, with micro-batches as small as its memory
/// needs; unchanged if none is small enough. Throws PlanError as `preset` does.
ExecutionPlan fitted_preset(const std::string& name,
                            const PlanProblem& problem);

} // namespace troupe::plans
