// Runs the master's own step graph and schedule (plans/schedule/schedule) over
// several steps with predicted durations in place of real work: when each task
// starts and ends, what it waited for, what moves, what each device holds. The
// same plan, simulated and run, starts its tasks in the same order.
#pragma once

#include "plans/cost/cost_model.hpp"
#include "plans/cost/shared_cores.hpp"
#include "plans/schedule/schedule.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::plans {

/// Start and end of a task in a step.
struct TaskTimes {
  TaskRef task = {};
  double start_s = 0;
  double end_s = 0;
};

/// Returns the graph with one device for each set of devices that run the same
/// tasks.
StepGraph with_device_classes(const StepGraph& graph);

/// Seconds by task of a graph, each while it runs alone. They also affect the
/// schedule's order.
struct TaskSeconds {
  std::vector<double> all = {};
  /// Seconds of tasks that begin a running batch; `all` has the seconds of
  /// chunks or slices that join one. Another task on their devices ends the
  /// batch (joined_chunks.hpp). Empty: no generation has chunks.
  std::vector<double> begins_batch = {};
  /// Slow-down of tasks that run in parallel on shared cores.
  SharedCores cores = {};
  /// `CostModel::use_of` for each task. Empty: all of every task's devices.
  std::vector<double> use = {};
  /// The master's seconds for all calls of a step: no step is shorter.
  double master_s = 0;
};

/// Returns start and end of every task of `num_steps` steps, in the order of
/// starts. Devices that run the same tasks are simulated as one.
std::vector<TaskTimes> run_schedule(const StepGraph& graph,
                                    const TaskSeconds& seconds,
                                    std::uint32_t num_steps);
/// Returns the seconds per step once the pipeline of steps is full.
double steady_step_s(const StepGraph& graph, std::span<const TaskTimes> times,
                     std::uint32_t num_steps);
/// Returns enough steps for `steady_step_s`.
std::uint32_t steps_to_simulate(const StepGraph& graph);

/// Idle seconds of a device per step, by what its next task waited for.
struct IdleTime {
  double dependency_s = 0; ///< rows of another call
  double version_s = 0;    ///< weights
  double device_s = 0;     ///< another device of the task's mesh
  double total_s() const {
    return dependency_s + version_s + device_s;
  }
};

/// Bytes from this time on.
struct MemoryPoint {
  double at_s = 0;
  std::uint64_t bytes = 0;
};

struct DeviceUse {
  Rank device = {};
  std::string kind = {}; ///< of its node; empty: all are alike
  double busy_s = 0;     ///< per step
  IdleTime idle = {};
  std::uint64_t peak_bytes = 0;
  std::string peak_task = {};
  std::vector<MemoryPoint> memory = {}; ///< over all simulated steps
};

struct Simulation {
  ResponseRooms rooms = {}; ///< of its generations, including evaluation's
  double step_s = 0;
  double idle_share = 0; ///< of all devices
  IdleTime idle = {};    ///< mean over the devices
  StepGraph graph = {};
  std::vector<double> durations_s
    = {};                            ///< by task of the graph, of a late step
  std::vector<MoveBytes> moved = {}; ///< by task of the graph
  std::vector<TaskTimes> times = {}; ///< of all simulated steps
  std::uint32_t num_steps = 0;
  std::vector<std::string> critical_path = {}; ///< of the last step
  std::vector<DeviceUse> devices = {};
  double master_s = 0;     ///< processor time of the master per step
  double evaluation_s = 0; ///< of one evaluation between steps; 0: none

  double moved_bytes() const; ///< between devices, per step
};

/// Returns the seconds of a call's task; 0 for other tasks and for functions on
/// the host.
double predict_task_s(const PlanProblem& problem, const CostModel& costs,
                      const ExecutionPlan& plan, const TaskTemplate& task);

/// Predicts the seconds of each task of `graph`.
TaskSeconds predict_seconds(const PlanProblem& problem, const CostModel& costs,
                            const ExecutionPlan& plan, const Replicas& replicas,
                            const StepGraph& graph);

/// Simulates a plan in full; throws PlanError unless it passes the check.
Simulation simulate(const PlanProblem& problem, const CostModel& costs,
                    const ExecutionPlan& plan);

/// Returns only the seconds per step, which searches need thousands of times.
double simulate_step_s(const PlanProblem& problem, const CostModel& costs,
                       const ExecutionPlan& plan);

} // namespace troupe::plans
