// Which of the tasks that run in a simulation ends next, and when.
#pragma once

#include "plans/shared_cores.hpp"
#include "plans/simulator.hpp"
#include "plans/step_graph.hpp"

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

/// Tasks that take their seconds whatever else runs.
class IndependentTasks {
public:
  bool empty() const {
    return ends_.empty();
  }
  /// The `number`-th task that starts, `task` of the graph.
  void start(std::size_t number, std::uint32_t /*task*/, double seconds) {
    ends_.push({now_s_ + seconds, number});
  }
  /// Time goes on to the end of a task.
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

/// Tasks of devices that share cores: each goes at the pace that those running
/// beside it leave it, from one start or end to the next.
class CoreSharingTasks {
public:
  CoreSharingTasks(const StepGraph& graph, const TaskSeconds& seconds);

  bool empty() const {
    return running_.empty();
  }
  /// `seconds`: while it runs alone.
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
    double alone; ///< stretch
  };
  /// Seconds that a second of `task` alone takes now.
  double pace(std::uint32_t task) const;

  SharedCores cores_;
  std::vector<Mesh> meshes_;             ///< by task of the graph
  std::map<std::uint32_t, double> busy_; ///< devices by node
  std::vector<Running> running_;         ///< in the order of starts
  double now_s_ = 0;
};

} // namespace troupe::plans::internal
