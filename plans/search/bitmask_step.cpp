#include "plans/search/bitmask_step.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace troupe::plans::internal {

namespace {

constexpr BitmaskStep::TaskSet fast_bit(std::uint32_t task) {
  return BitmaskStep::TaskSet{1} << task;
}

} // namespace

std::uint32_t BitmaskStep::add(const Task& task) {
  TROUPE_CHECK(count_ < most_tasks, "a step of too many tasks for bits");
  tasks_[count_] = task;
  return count_++;
}

/// Raises the path lengths of the tasks that `task` needs to those through it;
/// returns whether one became longer.
bool BitmaskStep::lengthen(std::uint32_t task, Seconds& path_s) const {
  bool longer = false;
  auto needs = tasks_[task].needs | tasks_[task].follows;
  for (; needs != 0; needs &= needs - 1) {
    const auto need = static_cast<std::uint32_t>(__builtin_ctzll(needs));
    const auto behind_s = path_s[task] + tasks_[need].seconds;
    longer = longer || behind_s > path_s[need];
    path_s[need] = std::max(path_s[need], behind_s);
  }
  return longer;
}

/// Returns the tasks by falling path length to the end of the step.
BitmaskStep::Order BitmaskStep::priorities() const {
  Seconds path_s;
  for (std::uint32_t i = 0; i < count_; ++i)
    path_s[i] = tasks_[i].seconds;
  for (bool longer = true; longer;) {
    longer = false;
    for (std::uint32_t i = 0; i < count_; ++i)
      longer = lengthen(i, path_s) || longer;
  }
  Order order;
  for (std::uint32_t i = 0; i < count_; ++i) {
    order[i] = static_cast<std::uint8_t>(i);
    if (tasks_[i].first)
      path_s[i] = std::numeric_limits<double>::infinity();
  }
  std::sort(order.begin(), order.begin() + count_, [&](auto a, auto b) {
    return path_s[a] != path_s[b] ? path_s[a] > path_s[b] : a < b;
  });
  return order;
}

/// Returns the seconds if each device runs its tasks in `order` and each task
/// waits for its needs.
double BitmaskStep::seconds_in(const Order& order) const {
  Seconds end_s;
  std::array<double, 64> free_s{}; // by device
  double last_s = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const auto& task = tasks_[order[i]];
    double start_s = 0;
    for (auto needs = task.needs; needs != 0; needs &= needs - 1)
      start_s = std::max(start_s, end_s[std::countr_zero(needs)]);
    for (auto bits = task.devices; bits != 0; bits &= bits - 1)
      start_s = std::max(start_s, free_s[std::countr_zero(bits)]);
    end_s[order[i]] = start_s + task.seconds;
    for (auto bits = task.devices; bits != 0; bits &= bits - 1)
      free_s[std::countr_zero(bits)] = end_s[order[i]];
    last_s = std::max(last_s, end_s[order[i]]);
  }
  return last_s;
}

double BitmaskStep::seconds() const {
  auto waiting = priorities(); // unstarted tasks, in order
  auto num_waiting = count_;
  Order started;
  std::uint32_t num_started = 0;
  TaskSet follows = 0;
  std::array<std::uint8_t, most_tasks> running;
  Seconds end_s;
  std::uint32_t num_running = 0;
  std::uint64_t done = 0, busy = 0;
  for (double now_s = 0;;) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < num_waiting; ++i) {
      const auto number = waiting[i];
      const auto& task = tasks_[number];
      const auto needs = task.needs | task.follows;
      if ((needs & ~done) != 0 || (task.devices & busy) != 0) {
        waiting[kept++] = number;
        continue;
      }
      busy |= task.devices;
      follows |= task.follows;
      started[num_started++] = number;
      end_s[number] = now_s + task.seconds;
      running[num_running++] = number;
    }
    num_waiting = kept;
    if (num_running == 0) {
      TROUPE_CHECK(num_waiting == 0, "tasks of a step wait for each other");
      return follows == 0 ? now_s : seconds_in(started);
    }
    now_s = end_s[running[0]];
    for (std::uint32_t i = 1; i < num_running; ++i)
      now_s = std::min(now_s, end_s[running[i]]);
    std::uint32_t left = 0;
    for (std::uint32_t i = 0; i < num_running; ++i) {
      const auto number = running[i];
      if (end_s[number] > now_s) {
        running[left++] = number;
        continue;
      }
      done |= fast_bit(number);
      busy &= ~tasks_[number].devices;
    }
    num_running = left;
  }
}

} // namespace troupe::plans::internal
