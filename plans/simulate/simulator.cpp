#include "plans/simulate/simulator.hpp"

#include "plans/check/planned_memory.hpp"
#include "plans/schedule/joined_chunks.hpp"
#include "plans/simulate/memory_curve.hpp"
#include "plans/simulate/running_tasks.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace troupe::plans {

namespace {

bool is_in_parts(const TaskPart& part) {
  return part.chunks > 1 || part.slice.is_cut();
}

/// Tracks which chunks or slices join the batch of an earlier one, as the
/// master does.
class RunningBatches {
public:
  explicit RunningBatches(const TaskSeconds& seconds) : seconds_(seconds) {}

  /// Returns the seconds of a task that starts now.
  double seconds_of(TaskRef task, const Schedule& schedule) {
    const auto& graph = schedule.graph();
    const auto& part = graph.tasks[task.task].part;
    if (seconds_.begins_batch.empty() || !is_in_parts(part)
        || joined_.erase(task) > 0)
      return seconds_.all[task.task];
    const auto batch = joined_chunks(graph, task, schedule.followers(task));
    joined_.insert(batch.begin() + 1, batch.end());
    return seconds_.begins_batch[task.task];
  }

private:
  const TaskSeconds& seconds_;
  std::set<TaskRef> joined_;
};

/// Cause and end of a task's delay.
struct Hold {
  double until_s = 0;
  Edge edge = Edge::data;
  bool device = false;
  std::int64_t by = -1; ///< index of the times; -1: nothing
};

/// Finds for recorded times which task delayed which.
class HoldFinder {
public:
  HoldFinder(const StepGraph& graph, const std::vector<TaskTimes>& times)
    : graph_(graph),
      times_(times) {
    for (std::size_t i = 0; i < times.size(); ++i)
      index_[key(times[i].task.task, times[i].task.step.value)] = i;
    std::map<Rank, std::int64_t> last;
    before_.resize(times.size());
    for (std::size_t i = 0; i < times.size(); ++i)
      for (const auto rank : graph.tasks[times[i].task.task].devices) {
        const auto found = last.find(rank);
        before_[i].emplace_back(rank, found == last.end() ? -1 : found->second);
        last[rank] = static_cast<std::int64_t>(i);
      }
  }

  Hold find(std::size_t i) const {
    Hold hold;
    const auto& task = times_[i].task;
    for (const auto& need : graph_.tasks[task.task].needs) {
      const auto step = std::int64_t{task.step.value} - need.steps_back;
      const auto found = index_.find(key(need.task, step));
      if (step >= 0 && found != index_.end())
        consider(hold, found->second, need.edge, false);
    }
    for (const auto& [rank, earlier] : before_[i])
      if (earlier >= 0)
        consider(hold, static_cast<std::size_t>(earlier), Edge::order, true);
    return hold;
  }

  /// Returns the task before `i` on `rank`; -1 if it is the first.
  std::int64_t before(std::size_t i, Rank rank) const {
    for (const auto& [device, earlier] : before_[i])
      if (device == rank)
        return earlier;
    return -1;
  }

private:
  static std::uint64_t key(std::uint32_t task, std::int64_t step) {
    return (static_cast<std::uint64_t>(step) << 32) | task;
  }
  void consider(Hold& hold, std::size_t by, Edge edge, bool device) const {
    if (hold.by >= 0 && times_[by].end_s <= hold.until_s)
      return;
    hold = {times_[by].end_s, edge, device, static_cast<std::int64_t>(by)};
  }

  const StepGraph& graph_;
  const std::vector<TaskTimes>& times_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
  std::vector<std::vector<std::pair<Rank, std::int64_t>>> before_;
};

void add_idle(IdleTime& idle, const Hold& hold, double seconds) {
  if (hold.device)
    idle.device_s += seconds;
  else if (hold.edge == Edge::version || hold.edge == Edge::write_after_read)
    idle.version_s += seconds;
  else
    idle.dependency_s += seconds;
}

/// Returns the names along the chain of delays, from the first task of the last
/// step to its last task.
std::vector<std::string> critical_path(const Simulation& run,
                                       const HoldFinder& holds) {
  const auto last = std::ranges::max_element(run.times, {}, &TaskTimes::end_s);
  if (last == run.times.end())
    return {};
  const auto step = last->task.step;
  std::vector<std::string> path;
  auto at = last - run.times.begin();
  while (at >= 0 && run.times[static_cast<std::size_t>(at)].task.step == step) {
    const auto& times = run.times[static_cast<std::size_t>(at)];
    if (times.end_s > times.start_s)
      path.push_back(run.graph.tasks[times.task.task].name);
    at = holds.find(static_cast<std::size_t>(at)).by;
  }
  std::ranges::reverse(path);
  return path;
}

/// Computes busy and idle seconds per step, over the steps after the first.
void add_use(Simulation& run, const HoldFinder& holds) {
  std::map<Rank, DeviceUse> use;
  for (std::size_t i = 0; i < run.times.size(); ++i) {
    const auto& times = run.times[i];
    const auto step = times.task.step.value;
    if (step == 0 || step >= run.num_steps)
      continue;
    const auto hold = holds.find(i);
    for (const auto rank : run.graph.tasks[times.task.task].devices) {
      auto& device = use[rank];
      device.busy_s += times.end_s - times.start_s;
      const auto earlier = holds.before(i, rank);
      const auto free_s
        = earlier < 0 ? 0 : run.times[static_cast<std::size_t>(earlier)].end_s;
      add_idle(device.idle, hold, std::max(0.0, times.start_s - free_s));
    }
  }
  const auto steps = std::max(1.0, run.num_steps - 1.0);
  double busy = 0;
  for (auto& device : run.devices) {
    const auto& found = use[device.device];
    device.busy_s = found.busy_s / steps;
    device.idle = {found.idle.dependency_s / steps,
                   found.idle.version_s / steps, found.idle.device_s / steps};
    // after a step's last task the device waits for other tasks
    device.idle.dependency_s
      += std::max(0.0, run.step_s - device.busy_s - device.idle.total_s());
    busy += device.busy_s;
    run.idle.dependency_s += device.idle.dependency_s;
    run.idle.version_s += device.idle.version_s;
    run.idle.device_s += device.idle.device_s;
  }
  const auto count = std::max<double>(1, double(run.devices.size()));
  run.idle = {run.idle.dependency_s / count, run.idle.version_s / count,
              run.idle.device_s / count};
  run.idle_share
    = run.step_s > 0 ? std::max(0.0, 1 - busy / count / run.step_s) : 0;
}

/// Returns the seconds of a step of evaluation's own graph; training pauses.
double evaluation_seconds(const PlanProblem& problem, const ExecutionPlan& plan,
                          const ResponseRooms& rooms) {
  if (problem.evaluation.none())
    return 0;
  auto alone = problem;
  alone.workflow = evaluation_beside_training(problem.evaluation.workflow);
  alone.sizes.samples_per_step = problem.evaluation.samples;
  const auto placed
    = with_rooms(place_evaluation(plan, problem.evaluation.workflow), rooms);
  const auto replicas = replicas_of(alone.workflow, placed);
  const auto graph = make_step_graph(alone.workflow, placed, replicas);
  const CostModel costs(alone);
  const auto seconds = predict_seconds(alone, costs, placed, replicas, graph);
  double end_s = 0;
  for (const auto& task : run_schedule(graph, seconds, 1))
    end_s = std::max(end_s, task.end_s);
  return end_s;
}

} // namespace

namespace {

MoveBytes moved_by(const PlanProblem& problem, const CostModel& costs,
                   const ExecutionPlan& plan, const Replicas& replicas,
                   const TaskTemplate& task) {
  switch (task.kind) {
  case TaskKind::move:
    return costs.move_bytes_of(task.role, mesh_of(replicas[*task.source]),
                               mesh_of(replicas[*task.target]));
  case TaskKind::update:
    return update_bytes(problem.shapes.at(task.role),
                        plan.calls.at(task.call).strategy);
  default:
    return {};
  }
}

} // namespace

StepGraph with_device_classes(const StepGraph& graph) {
  std::map<Rank, std::vector<std::uint32_t>> tasks_of;
  for (std::uint32_t i = 0; i < graph.tasks.size(); ++i)
    for (const auto rank : graph.tasks[i].devices)
      tasks_of[rank].push_back(i);
  std::map<std::vector<std::uint32_t>, Rank> classes;
  for (const auto& [rank, tasks] : tasks_of)
    classes.try_emplace(tasks, rank);
  StepGraph small;
  small.max_lag = graph.max_lag;
  for (const auto& task : graph.tasks) {
    auto copy = task;
    copy.devices.clear();
    small.tasks.push_back(std::move(copy));
  }
  for (const auto& [tasks, rank] : classes)
    for (const auto i : tasks)
      small.tasks[i].devices.push_back(rank);
  for (auto& task : small.tasks)
    std::ranges::sort(task.devices);
  return small;
}

namespace {

template <class RunningTasks>
std::vector<TaskTimes> run_tasks(RunningTasks running, const StepGraph& graph,
                                 const TaskSeconds& seconds,
                                 std::uint32_t num_steps) {
  Schedule schedule(with_device_classes(graph), StepId{0},
                    StepId{std::uint64_t{num_steps}}, seconds.all);
  RunningBatches batches(seconds);
  std::vector<TaskTimes> times;
  times.reserve(std::size_t{num_steps} * graph.tasks.size());
  const auto start = [&](const std::vector<TaskRef>& tasks, double now_s) {
    for (const auto task : tasks) {
      running.start(times.size(), task.task,
                    batches.seconds_of(task, schedule));
      times.push_back({.task = task, .start_s = now_s});
    }
  };
  start(schedule.start(), 0);
  while (!running.empty()) {
    const auto end = running.next();
    times[end.number].end_s = end.at_s;
    start(schedule.finished(times[end.number].task), end.at_s);
  }
  TROUPE_CHECK(schedule.all_done(), "the simulated schedule stopped early");
  return times;
}

} // namespace

std::vector<TaskTimes> run_schedule(const StepGraph& graph,
                                    const TaskSeconds& seconds,
                                    std::uint32_t num_steps) {
  if (seconds.cores.any())
    return run_tasks(internal::CoreSharingTasks(graph, seconds), graph, seconds,
                     num_steps);
  return run_tasks(internal::IndependentTasks(), graph, seconds, num_steps);
}

std::uint32_t steps_to_simulate(const StepGraph& graph) {
  return graph.max_lag == 0 ? 3 : 6 + 4 * graph.max_lag;
}

double steady_step_s(const StepGraph& graph, std::span<const TaskTimes> times,
                     std::uint32_t num_steps) {
  const auto first = std::min(1 + graph.max_lag, num_steps - 1);
  double early = 0, late = 0;
  for (const auto& task : times) {
    if (task.task.step.value < first)
      early = std::max(early, task.end_s);
    late = std::max(late, task.end_s);
  }
  return (late - early) / std::max(1u, num_steps - first);
}

double Simulation::moved_bytes() const {
  double bytes = 0;
  for (std::size_t i = 0; i < moved.size(); ++i)
    bytes += (moved[i].intra + moved[i].inter) / graph.tasks[i].every;
  return bytes;
}

Simulation simulate(const PlanProblem& problem, const CostModel& costs,
                    const ExecutionPlan& wanted) {
  const auto report = check_plan(problem, wanted);
  require_ok(report);
  const auto plan = with_rooms(wanted, report.rooms);
  const auto replicas = replicas_of(problem.workflow, plan);
  Simulation run{.rooms = report.rooms};
  run.graph = make_step_graph(problem.workflow, plan, replicas);
  const auto seconds
    = predict_seconds(problem, costs, plan, replicas, run.graph);
  for (const auto& task : run.graph.tasks)
    run.moved.push_back(moved_by(problem, costs, plan, replicas, task));
  run.num_steps = steps_to_simulate(run.graph);
  run.times = run_schedule(run.graph, seconds, run.num_steps);
  run.durations_s = seconds.all;
  for (const auto& task : run.times)
    if (is_in_parts(run.graph.tasks[task.task.task].part)
        || seconds.cores.any())
      run.durations_s[task.task.task] = task.end_s - task.start_s;
  run.master_s = seconds.master_s;
  run.step_s = std::max(run.master_s,
                        steady_step_s(run.graph, run.times, run.num_steps));
  for (const auto& device : report.devices)
    run.devices.push_back({.device = device.device,
                           .kind = device.kind,
                           .peak_bytes = device.peak_bytes,
                           .peak_task = device.at_task});
  add_memory_curves(run, report.devices);
  const HoldFinder holds(run.graph, run.times);
  run.critical_path = critical_path(run, holds);
  add_use(run, holds);
  run.evaluation_s = evaluation_seconds(problem, plan, report.rooms);
  return run;
}

double simulate_step_s(const PlanProblem& problem, const CostModel& costs,
                       const ExecutionPlan& wanted) {
  const auto plan = with_rooms(problem, wanted);
  const auto replicas = replicas_of(problem.workflow, plan);
  const auto graph = make_step_graph(problem.workflow, plan, replicas);
  const auto seconds = predict_seconds(problem, costs, plan, replicas, graph);
  const auto steps = steps_to_simulate(graph);
  return std::max(
    seconds.master_s,
    steady_step_s(graph, run_schedule(graph, seconds, steps), steps));
}

} // namespace troupe::plans
