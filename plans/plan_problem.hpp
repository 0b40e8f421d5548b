// Everything that planning depends on, in one value: what is computed, on what,
// how long answers are, and what this machine can do. Cost model, simulator and
// search take one of these.
#pragma once

#include "plans/hardware.hpp"
#include "plans/lengths.hpp"
#include "plans/plan_check.hpp"
#include "plans/profile_table.hpp"
#include "plans/workflow.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace troupe::plans {

struct PlanProblem {
  Workflow workflow = {};
  Cluster cluster = {};
  std::map<std::string, ModelShape> shapes = {}; ///< by role, all of them
  std::map<std::string, DType> dtypes = {};      ///< by role; absent: f32
  BatchSizes sizes = {};
  Lengths lengths = {};
  Hardware hardware = {};
  ProfileTable profile = {}; ///< empty: formulas only
  bool corrects_for_lag = true;
  bool for_run = false; ///< on this host, whose memory its devices share
  Evaluation evaluation = {};

  /// Bytes that a plan may use of each device; 0: no limit known.
  std::uint64_t device_memory_bytes() const;
  DType dtype(const std::string& role) const;
};

/// What `sizes` are for GPUs: a pass of 32,768 tokens fills one, and what is
/// computed with is kept as engines there keep it.
BatchSizes sizes_on_gpu(BatchSizes sizes);

/// The problem's devices have so much memory, and keep `cluster.memory_reserve`
/// of it free or what the hardware says, whichever is more.
void set_memory(PlanProblem& problem, const Settings& settings,
                std::uint64_t device_bytes);

/// What a plan of the problem is checked with. References both.
CheckContext check_context(const PlanProblem& problem,
                           const ExecutionPlan& plan);
/// The plan with the answers of its generations at once, which depend on what
/// it leaves free (`with_rooms`).
ExecutionPlan with_rooms(const PlanProblem& problem, const ExecutionPlan& plan);

/// The plan check in this problem: its shapes, sizes and memory.
PlanReport check_plan(const PlanProblem& problem, const ExecutionPlan& plan);

/// A preset in this problem, with micro-batches as small as its memory needs;
/// as it is where none is small enough. Throws PlanError as `preset` does.
ExecutionPlan fitted_preset(const std::string& name,
                            const PlanProblem& problem);

} // namespace troupe::plans
