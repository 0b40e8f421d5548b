// Counts the open needs of every task of the open steps. Independent of devices
// and order; `TotalOrder` and `Schedule` each run on one of these.
#pragma once

#include "plans/schedule/step_graph.hpp"

#include <deque>
#include <vector>

namespace troupe::plans {

class TaskTracker {
public:
  /// Treats steps before `first` as done. Of steps from `end` on there are only
  /// the tasks that a task before `end` waits for (steps_ahead). `graph` must
  /// outlive this.
  TaskTracker(const StepGraph& graph, StepId first, StepId end);

  /// Returns whether another step exists and fits into 1 + max_lag open ones.
  bool may_open() const;
  /// Opens the next step and appends its tasks without open needs.
  void open_step(std::vector<TaskRef>& ready);
  /// Records that a task is done and appends the tasks that waited only for it.
  /// Throws InvariantError for a task that is not ready or done already.
  void finish(TaskRef task, std::vector<TaskRef>& ready);

  /// Moves `end` to the first step that is not open; appends the tasks that
  /// waited only for tasks that no longer exist.
  void stop_opening(std::vector<TaskRef>& ready);

  bool exists(TaskRef task) const;
  bool is_open(StepId step) const;
  bool is_ready(TaskRef task) const; ///< open, all needs met, not finished
  bool is_finished(TaskRef task) const;
  bool step_done(StepId step) const;
  bool all_done() const;
  /// Returns the first of the open steps [oldest(), next()).
  std::uint32_t oldest() const {
    return oldest_;
  }
  std::uint32_t next() const {
    return oldest_ + static_cast<std::uint32_t>(steps_.size());
  }
  StepId end() const {
    return StepId{static_cast<std::uint64_t>(end_)};
  }
  /// The first unmet need of an open task, as the task it waits for.
  struct Unmet {
    TaskRef whom;
    Edge edge;
  };
  std::optional<Unmet> first_unmet(TaskRef task) const;

private:
  struct Step {
    std::vector<std::uint32_t> open_needs; ///< by task
    std::vector<bool> finished;            ///< by task
    std::uint32_t unfinished = 0;
  };
  struct Successor {
    std::uint32_t task;
    std::int32_t steps_back;
  };
  bool exists(std::int64_t step, std::uint32_t task) const;
  bool is_met(std::int64_t step, std::uint32_t task) const;

  const StepGraph* graph_;
  std::vector<std::uint32_t> ahead_;           ///< by task
  std::vector<std::uint32_t> successor_begin_; ///< by task, one past the last
  std::vector<Successor> successors_;
  std::int64_t first_;
  std::int64_t end_;
  std::int64_t beyond_; ///< one past the last step that holds a task
  std::uint32_t oldest_;
  std::deque<Step> steps_;
};

/// Throws PlanError naming the tasks of a cycle if `graph` cannot finish.
void check_graph_finishes(const StepGraph& graph);

} // namespace troupe::plans
