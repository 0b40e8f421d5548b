// Which of the running tasks of a simulation ends next, and when.
#pragma once

#include "plans/cost/shared_cores.hpp"
#include "plans/schedule/step_graph.hpp"
#include "plans/simulate/simulator.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <vector>

namespace troupe::plans::internal {

struct TaskEnd {
  double at_s = 0;
  std::size_t number = 0; ///< equal times end in the order of starts
  auto operator<=>(const TaskEnd&) const = default;
};

/// Tasks whose duration does not depend on what else runs.
class IndependentTasks {
public:
  bool empty() const {
    return ends_.empty();
  }
  /// Starts `task` of the graph as the `number`-th task.
  void start(std::size_t number, std::uint32_t /*task*/, double seconds) {
    ends_.push({now_s_ + seconds, number});
  }
  /// Advances time to the end of the next task.
  TaskEnd next() {
    const auto end = ends_.top();
    ends_.pop();
    now_s_ = end.at_s;
    return end;
  }

private:
  double now_s_ = 0;
  std::priority_queue<TaskEnd, std::vector<TaskEnd>, std::greater<>> ends_;
};

/// Tasks of devices that share cores: each progresses at a pace set by the
/// tasks that run in parallel, from one start or end to the next.
class CoreSharingTasks {
public:
  CoreSharingTasks(const StepGraph& graph, const TaskSeconds& seconds);

  bool empty() const {
    return running_.empty();
  }
  /// Starts a task; `seconds` is its duration while it runs alone.
  void start(std::size_t number, std::uint32_t task, double seconds);
  TaskEnd next();

private:
  struct Running {
    std::size_t number;
    std::uint32_t task;
    double left_s; ///< if it ran alone from now on
  };
  struct Mesh {
    DevicesOfNodes devices;
    double alone; ///< stretch when alone
  };
  /// Returns how many seconds one stand-alone second of `task` takes now.
  double pace(std::uint32_t task) const;

  SharedCores cores_;
  std::vector<Mesh> meshes_;             ///< by task of the graph
  std::map<std::uint32_t, double> busy_; ///< devices by node
  std::vector<Running> running_;         ///< in the order of starts
  double now_s_ = 0;
};

} // namespace troupe::plans::internal
