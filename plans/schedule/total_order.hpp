// The one total order of all tasks: the order in which a list schedule with
// predicted durations would start them. Earlier steps come first and, inside a
// step, the task with the longest predicted path after it. Tasks that free
// memory go first; those that take no time (a drop) are placed after their last
// reader and occupy no device, so dropping a replica does not change the order
// of the others. No device idles in the prediction while a task could run on
// it. Reloads from host memory, and moves before whose first reader other calls
// may run on its devices, are placed right before their call, wherever that is,
// so no other call of the device finds their planes there; when their turn
// comes they do not wait for the call's rows. Depends only on its arguments
// (I8).
#pragma once

#include "plans/schedule/task_tracker.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe::plans {

class TotalOrder {
public:
  /// Keeps a reference: `graph` must outlive this. `durations_s`: predicted
  /// seconds by template, or empty for 1 each.
  TotalOrder(const StepGraph& graph, StepId first, StepId end,
             std::span<const double> durations_s);

  /// Returns the next task, a linear extension of the needs; nullopt after the
  /// last.
  std::optional<TaskRef> next();

private:
  /// Sort key: smaller runs first.
  struct Priority {
    std::int64_t step;   ///< -1: right after the task that ended
    double minus_path_s; ///< longest path after it
    TaskRef task;
    auto operator<=>(const Priority&) const = default;
  };
  struct Candidate {
    Priority priority;
    std::uint32_t from; ///< the freed device it waited for, or no_device
    bool operator>(const Candidate& other) const {
      return priority > other.priority;
    }
  };
  struct Running {
    double end_s;
    std::uint64_t number; ///< of its start: equal times finish in start order
    TaskRef task;
    bool operator>(const Running& other) const {
      return end_s != other.end_s ? end_s > other.end_s : number > other.number;
    }
  };
  static constexpr std::uint32_t no_device = ~0u;

  bool takes_no_time(TaskRef task) const;
  void add_candidate(TaskRef task);
  void take_ready();
  void advance();
  void finish_earliest();
  void run_candidates();
  void start(TaskRef task);
  void wake_next(std::uint32_t device);

  std::unique_ptr<const StepGraph> beside_calls_; ///< null: not needed
  const StepGraph* graph_;
  TaskTracker tracker_;
  std::vector<double> durations_s_;
  std::vector<double> paths_s_;
  std::vector<bool> is_next_; ///< by task: right after its last need
  std::vector<std::vector<std::uint32_t>> devices_; ///< by task, dense indices
  std::vector<char> busy_;                          ///< by device
  std::vector<std::vector<Priority>> waiting_;      ///< by device, heaps
  std::vector<Candidate> candidates_;               ///< heap
  std::vector<Running> running_;                    ///< heap
  std::vector<TaskRef> ready_;
  std::deque<TaskRef> emitted_;
  double now_s_ = 0;
  std::uint64_t started_ = 0;
};

/// Returns the longest path from the start of each template to the end of its
/// step, along needs within the step.
std::vector<double> longest_paths(const StepGraph& graph,
                                  std::span<const double> durations_s);

} // namespace troupe::plans
