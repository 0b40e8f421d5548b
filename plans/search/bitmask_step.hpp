// Seconds of one step of at most 64 tasks without lag, on bit masks: the result
// of run_schedule for such a step, without a graph or an allocation. Tasks
// start in the schedule's order: those whose needs are done, longest path
// first, each as soon as all its devices are idle. Searches call this a million
// times; a test holds the two equal.
#pragma once

#include <array>
#include <cstdint>

namespace troupe::plans::internal {

class BitmaskStep {
public:
  static constexpr std::uint32_t most_tasks = 64;
  using TaskSet = std::uint64_t;

  struct Task {
    double seconds = 0;
    std::uint64_t devices = 0; ///< bits; none: on the host
    TaskSet needs = 0;
    /// Tasks that decide its place in the order of its devices, but need not be
    /// done when its turn comes.
    TaskSet follows = 0;
    /// Scheduled before all others: it offloads planes, or its own were just
    /// loaded.
    bool first = false;
  };

  /// Adds a task and returns its number. Equal paths start in this order.
  std::uint32_t add(const Task& task);
  void add_needs(std::uint32_t task, TaskSet needs) {
    tasks_[task].needs |= needs;
  }
  void put_first(std::uint32_t task) {
    tasks_[task].first = true;
  }
  const Task& operator[](std::uint32_t task) const {
    return tasks_[task];
  }

  /// Returns the time from the start of the first task to the end of the last.
  double seconds() const;

private:
  using Order = std::array<std::uint8_t, most_tasks>;
  using Seconds = std::array<double, most_tasks>;
  bool lengthen(std::uint32_t task, Seconds& path_s) const;
  Order priorities() const;
  double seconds_in(const Order& order) const;

  std::array<Task, most_tasks> tasks_;
  std::uint32_t count_ = 0;
};

} // namespace troupe::plans::internal
