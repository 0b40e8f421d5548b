#include "plans/schedule/schedule.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

constexpr auto no_position = ~std::uint64_t{0};

} // namespace

std::string_view to_string(WaitReason reason) {
  switch (reason) {
  case WaitReason::dependency:
    return "dependency";
  case WaitReason::device:
    return "device";
  case WaitReason::version:
    return "version";
  }
  return "?";
}

namespace {

WaitReason reason_of(Edge edge) {
  return edge == Edge::version || edge == Edge::write_after_read
           ? WaitReason::version
           : WaitReason::dependency;
}

} // namespace

WaitReason wait_reason(const StepGraph& graph, TaskRef who, TaskRef whom) {
  for (const auto& need : graph.tasks[who.task].needs)
    if (need.task == whom.task
        && std::int64_t{who.step.value} - need.steps_back == whom.step.value)
      return reason_of(need.edge);
  return WaitReason::device;
}

Schedule::Schedule(StepGraph graph, StepId first, StepId end,
                   std::span<const double> durations_s)
  : graph_(std::make_unique<const StepGraph>(std::move(graph))),
    tracker_(*graph_, first, end),
    order_(*graph_, first, end, durations_s),
    queues_of_(graph_->tasks.size()),
    ordered_from_(first.value) {
  std::map<Rank, std::uint32_t> numbers;
  for (std::size_t i = 0; i < graph_->tasks.size(); ++i)
    for (const auto rank : graph_->tasks[i].devices) {
      const auto [found, added]
        = numbers.try_emplace(rank, static_cast<std::uint32_t>(queues_.size()));
      if (added)
        queues_.push_back({.device = rank, .tasks = {}});
      queues_of_[i].push_back(found->second);
    }
}

std::vector<TaskRef> Schedule::start() {
  open_steps();
  return take_startable();
}

std::vector<TaskRef> Schedule::finished(TaskRef task) {
  TROUPE_CHECK(tracker_.is_open(task.step)
                 && ordered(task.step).started[task.task],
               fmt::format("task {} of step {} finished without a start",
                           task.task, task.step.value));
  tracker_.finish(task, candidates_);
  for (const auto number : queues_of_[task.task]) {
    auto& tasks = queues_[number].tasks;
    tasks.pop_front();
    if (!tasks.empty())
      candidates_.push_back(tasks.front());
  }
  for (; ordered_from_ < tracker_.oldest(); ++ordered_from_)
    ordered_.pop_front();
  open_steps();
  return take_startable();
}

std::vector<TaskRef> Schedule::stop_unrolling() {
  tracker_.stop_opening(candidates_);
  for (auto& queue : queues_) {
    std::erase_if(queue.tasks,
                  [&](TaskRef task) { return !tracker_.exists(task); });
    if (!queue.tasks.empty())
      candidates_.push_back(queue.tasks.front());
  }
  return take_startable();
}

void Schedule::open_steps() {
  while (tracker_.may_open()) {
    order_step(tracker_.next());
    tracker_.open_step(candidates_);
  }
}

Schedule::Ordered& Schedule::ordered(StepId step) {
  const auto slot = step.value - ordered_from_;
  while (ordered_.size() <= slot)
    ordered_.push_back(
      {.positions
       = std::vector<std::uint64_t>(graph_->tasks.size(), no_position),
       .started = std::vector<bool>(graph_->tasks.size(), false)});
  return ordered_[slot];
}

/// Draws from the total order until every task of `step` has its position.
void Schedule::order_step(std::uint32_t step) {
  const auto& positions = ordered(StepId{step}).positions;
  std::size_t missing = 0;
  for (std::uint32_t i = 0; i < positions.size(); ++i)
    missing += positions[i] == no_position
               && tracker_.exists(TaskRef{i, StepId{step}});
  while (missing > 0) {
    const auto task = order_.next();
    TROUPE_CHECK(task, "the total order ends too early");
    ordered(task->step).positions[task->task] = next_position_++;
    if (!tracker_.exists(*task))
      continue;
    missing -= task->step == StepId{step};
    for (const auto number : queues_of_[task->task])
      queues_[number].tasks.push_back(*task);
  }
}

bool Schedule::is_first_everywhere(TaskRef task) const {
  const auto is_first = [&](std::uint32_t number) {
    return queues_[number].tasks.front() == task;
  };
  return std::ranges::all_of(queues_of_[task.task], is_first);
}

std::vector<TaskRef> Schedule::take_startable() {
  std::vector<TaskRef> startable;
  for (const auto task : candidates_) {
    if (!tracker_.is_ready(task) || !is_first_everywhere(task))
      continue;
    auto started = ordered(task.step).started[task.task];
    if (started)
      continue;
    started = true;
    startable.push_back(task);
  }
  candidates_.clear();
  std::ranges::sort(startable, {},
                    [&](TaskRef task) { return position(task); });
  return startable;
}

std::uint64_t Schedule::position(TaskRef task) const {
  return ordered_.at(task.step.value - ordered_from_).positions.at(task.task);
}

std::vector<TaskRef> Schedule::running() const {
  std::vector<TaskRef> tasks;
  for (auto step = tracker_.oldest(); step < tracker_.next(); ++step)
    for (std::uint32_t i = 0; i < graph_->tasks.size(); ++i)
      if (ordered_[step - ordered_from_].started[i]
          && !tracker_.is_finished({i, StepId{step}}))
        tasks.push_back({i, StepId{step}});
  std::ranges::sort(tasks, {}, [&](TaskRef task) { return position(task); });
  return tasks;
}

std::vector<TaskRef> Schedule::followers(TaskRef task) const {
  std::vector<TaskRef> followers;
  const auto& numbers = queues_of_[task.task];
  if (numbers.empty())
    return followers;
  const auto& first = queues_[numbers.front()].tasks;
  for (std::size_t i = 1; i < first.size(); ++i) {
    const bool everywhere
      = queues_of_[first[i].task] == numbers
        && std::ranges::all_of(numbers, [&](std::uint32_t number) {
             const auto& tasks = queues_[number].tasks;
             return i < tasks.size() && tasks[i] == first[i];
           });
    if (!everywhere)
      break;
    followers.push_back(first[i]);
  }
  return followers;
}

std::optional<Wait> Schedule::wait_of(TaskRef task) const {
  if (const auto unmet = tracker_.first_unmet(task))
    return Wait{.who = task,
                .whom = unmet->whom,
                .why = reason_of(unmet->edge),
                .edge = unmet->edge};
  for (const auto number : queues_of_[task.task]) {
    const auto& queue = queues_[number];
    if (queue.tasks.front() != task)
      return Wait{.who = task,
                  .whom = queue.tasks.front(),
                  .why = WaitReason::device,
                  .device = queue.device};
  }
  return std::nullopt;
}

std::vector<Wait> Schedule::waits() const {
  std::vector<Wait> waits;
  for (auto step = tracker_.oldest(); step < tracker_.next(); ++step)
    for (std::uint32_t i = 0; i < graph_->tasks.size(); ++i) {
      if (ordered_[step - ordered_from_].started[i]
          || tracker_.is_finished({i, StepId{step}}))
        continue;
      if (auto wait = wait_of({i, StepId{step}}))
        waits.push_back(*wait);
    }
  return waits;
}

bool Schedule::has_started(TaskRef task) const {
  return ordered_.at(task.step.value - ordered_from_).started.at(task.task);
}

std::vector<IdleDevice> Schedule::idle_devices() const {
  std::vector<IdleDevice> idle;
  if (all_done())
    return idle;
  for (const auto& queue : queues_) {
    if (queue.tasks.empty())
      idle.push_back({queue.device});
    else if (!has_started(queue.tasks.front()))
      idle.push_back({queue.device, wait_of(queue.tasks.front())});
  }
  return idle;
}

namespace {

std::string why_of(const Wait& wait) {
  return wait.why == WaitReason::device
           ? fmt::format("device {}", wait.device->value)
           : std::string(to_string(wait.edge));
}

} // namespace

std::string Schedule::describe_whom(const Wait& wait) const {
  return fmt::format("{} ({})", graph_->tasks[wait.whom.task].name,
                     why_of(wait));
}

std::string Schedule::describe(const Wait& wait) const {
  return fmt::format("{} of step {} waits for {} of step {} ({})",
                     graph_->tasks[wait.who.task].name,
                     step_number(wait.who.step),
                     graph_->tasks[wait.whom.task].name,
                     step_number(wait.whom.step), why_of(wait));
}

} // namespace troupe::plans
