// Which task may start now. Each device runs its tasks in the one total order
// (total_order.hpp); a task starts when its needs are met and it is first on
// all its devices; host tasks start when their needs are met. So the earliest
// unfinished task of the order can always start: no deadlock, whatever the real
// durations. Pure: no clock, no I/O; a call costs O(log) amortised.
#pragma once

#include "plans/total_order.hpp"

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::plans {

/// Why a task has not started (I7).
enum class WaitReason : std::uint8_t {
  dependency, ///< rows, or its own turn of the step before
  device,     ///< another task comes first on one of its devices
  version,    ///< weights not there yet, or still read at the old version
};
std::string_view to_string(WaitReason reason);

/// Why `who` waited when the end of `whom` was the last thing it needed.
WaitReason wait_reason(const StepGraph& graph, TaskRef who, TaskRef whom);

struct Wait {
  TaskRef who;
  TaskRef whom;
  WaitReason why = WaitReason::dependency;
  Edge edge = Edge::data;          ///< for dependency and version
  std::optional<Rank> device = {}; ///< for device
};

/// What the next task of an idle device waits for; nothing: for the end of the
/// step, behind which more tasks come.
struct IdleDevice {
  Rank device;
  std::optional<Wait> wait = {};
};

class Schedule {
public:
  /// Runs steps first .. end-1, and of later ones what these wait for
  /// (steps_ahead). `durations_s`: predicted seconds by template,
  /// empty for 1 each; they shape the order only.
  Schedule(StepGraph graph, StepId first, StepId end,
           std::span<const double> durations_s = {});

  /// The tasks that start at once, in total order. Call once.
  std::vector<TaskRef> start();
  /// Notes the end of a started task; the tasks that may start now, in total
  /// order. Throws InvariantError for a task that was not started.
  std::vector<TaskRef> finished(TaskRef task);

  /// Ends the run early: steps that are not unrolled yet never begin, `end()`
  /// moves nearer. The tasks that may start now, in total order.
  std::vector<TaskRef> stop_unrolling();
  /// One past the last step.
  StepId end() const {
    return tracker_.end();
  }

  /// All tasks of `step` have finished: its rows may go.
  bool step_done(StepId step) const {
    return tracker_.step_done(step);
  }
  bool all_done() const {
    return tracker_.all_done();
  }
  /// Steps before this one are done; at most 1 + max_lag steps from it on are
  /// unrolled.
  StepId oldest_step() const {
    return StepId{tracker_.oldest()};
  }
  /// Every task of the open steps that has not started, with one reason each.
  std::vector<Wait> waits() const;
  /// Devices on which nothing has started, while there is more to do.
  std::vector<IdleDevice> idle_devices() const;
  /// Started and not finished, in total order.
  std::vector<TaskRef> running() const;
  /// What comes behind a started task on its devices, in order, as far as it is
  /// the same on all of them.
  std::vector<TaskRef> followers(TaskRef task) const;
  /// Place in the total order, from 0; for tasks of open steps.
  std::uint64_t position(TaskRef task) const;
  const StepGraph& graph() const {
    return *graph_;
  }
  /// "rew_inf of step 3 waits for actor_gen of step 3 (data)".
  std::string describe(const Wait& wait) const;
  /// "actor_gen (data)": whom and why, without the steps.
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
