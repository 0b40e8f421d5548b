// Which task may start now. Each device runs its tasks in the one total order
// (total_order.hpp); a task starts when its needs are met and it is first on
// all its devices; host tasks start when their needs are met. So the earliest
// unfinished task of the order can always start: no deadlock, whatever the real
// durations. Pure: no clock, no I/O; a call costs O(log) amortised.
#pragma once

#include "plans/schedule/total_order.hpp"

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::plans {

/// Reason why a task has not started (I7).
enum class WaitReason : std::uint8_t {
  dependency, ///< rows, or its own turn of the previous step
  device,     ///< another task comes first on one of its devices
  version,    ///< weights not there yet, or still read at the old version
};
std::string_view to_string(WaitReason reason);

/// Returns why `who` waited if the end of `whom` was the last thing it needed.
WaitReason wait_reason(const StepGraph& graph, TaskRef who, TaskRef whom);

struct Wait {
  TaskRef who;
  TaskRef whom;
  WaitReason why = WaitReason::dependency;
  Edge edge = Edge::data;          ///< for dependency and version
  std::optional<Rank> device = {}; ///< for device
};

/// An idle device and what its next task waits for; no wait: the end of the
/// step, after which more tasks follow.
struct IdleDevice {
  Rank device;
  std::optional<Wait> wait = {};
};

class Schedule {
public:
  /// Runs steps [first, end), and those tasks of later steps that these wait
  /// for (steps_ahead). `durations_s`: predicted seconds by template, empty for
  /// 1 each; they affect only the order.
  Schedule(StepGraph graph, StepId first, StepId end,
           std::span<const double> durations_s = {});

  /// Returns the tasks that start at once, in total order. Call once.
  std::vector<TaskRef> start();
  /// Records the end of a started task; returns the tasks that may start now,
  /// in total order. Throws InvariantError for a task that was not started.
  std::vector<TaskRef> finished(TaskRef task);

  /// Ends the run early: steps that are not unrolled yet never begin, and
  /// `end()` becomes the first of them. Returns the tasks that may start now,
  /// in total order.
  std::vector<TaskRef> stop_unrolling();
  /// Returns the step after the last one.
  StepId end() const {
    return tracker_.end();
  }

  /// Returns whether all tasks of `step` have finished: its rows may be freed.
  bool step_done(StepId step) const {
    return tracker_.step_done(step);
  }
  bool all_done() const {
    return tracker_.all_done();
  }
  /// Returns the first step that is not done; from it on at most 1 + max_lag
  /// steps are unrolled.
  StepId oldest_step() const {
    return StepId{tracker_.oldest()};
  }
  /// Returns every task of the open steps that has not started, with one reason
  /// each.
  std::vector<Wait> waits() const;
  /// Returns the devices on which nothing runs while there is more to do.
  std::vector<IdleDevice> idle_devices() const;
  /// Returns the tasks that have started but not finished, in total order.
  std::vector<TaskRef> running() const;
  /// Returns the tasks after a started one on its devices, in order, as far as
  /// they are the same on all of them.
  std::vector<TaskRef> followers(TaskRef task) const;
  /// Returns the position in the total order, from 0; for tasks of open steps.
  std::uint64_t position(TaskRef task) const;
  const StepGraph& graph() const {
    return *graph_;
  }
  /// Returns "rew_inf of step 3 waits for actor_gen of step 3 (data)".
  std::string describe(const Wait& wait) const;
  /// Returns "actor_gen (data)": the other task and the reason, without steps.
  std::string describe_whom(const Wait& wait) const;

private:
  struct Ordered {
    std::vector<std::uint64_t> positions; ///< by task
    std::vector<bool> started;            ///< by task
  };
  struct Queue {
    Rank device;
    std::deque<TaskRef> tasks; ///< in total order, the first runs or is next
  };

  void open_steps();
  void order_step(std::uint32_t step);
  Ordered& ordered(StepId step);
  bool is_first_everywhere(TaskRef task) const;
  bool has_started(TaskRef task) const;
  std::optional<Wait> wait_of(TaskRef task) const;
  std::vector<TaskRef> take_startable();

  std::unique_ptr<const StepGraph> graph_; ///< trackers point to it
  TaskTracker tracker_;
  TotalOrder order_;
  std::vector<std::vector<std::uint32_t>> queues_of_; ///< by task
  std::vector<Queue> queues_;
  std::deque<Ordered> ordered_; ///< from step `ordered_from_` on
  std::uint32_t ordered_from_;
  std::uint64_t next_position_ = 0;
  std::vector<TaskRef> candidates_;
};

} // namespace troupe::plans
