#include "plans/schedule/task_tracker.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::plans {

TaskTracker::TaskTracker(const StepGraph& graph, StepId first, StepId end)
  : graph_(&graph),
    ahead_(steps_ahead(graph)),
    successor_begin_(graph.tasks.size() + 1, 0),
    first_(first.value),
    end_(end.value),
    beyond_(end_),
    oldest_(first.value) {
  TROUPE_CHECK(first <= end, "the last step lies before the first");
  for (const auto ahead : ahead_)
    beyond_ = std::max(beyond_, end_ + ahead);
  for (const auto& task : graph.tasks)
    for (const auto& need : task.needs)
      ++successor_begin_[need.task + 1];
  for (std::size_t i = 1; i < successor_begin_.size(); ++i)
    successor_begin_[i] += successor_begin_[i - 1];
  successors_.resize(successor_begin_.back());
  auto next = successor_begin_;
  for (std::uint32_t i = 0; i < graph.tasks.size(); ++i)
    for (const auto& need : graph.tasks[i].needs)
      successors_[next[need.task]++] = {i, need.steps_back};
}

bool TaskTracker::exists(std::int64_t step, std::uint32_t task) const {
  return step < end_ + ahead_[task];
}

bool TaskTracker::exists(TaskRef task) const {
  return exists(std::int64_t{task.step.value}, task.task);
}

bool TaskTracker::is_met(std::int64_t step, std::uint32_t task) const {
  if (step < oldest_ || !exists(step, task))
    return true;
  const auto slot = static_cast<std::size_t>(step - oldest_);
  return slot < steps_.size() && steps_[slot].finished[task];
}

bool TaskTracker::may_open() const {
  return !all_done() && next() < beyond_ && steps_.size() < graph_->max_lag + 1;
}

void TaskTracker::open_step(std::vector<TaskRef>& ready) {
  TROUPE_CHECK(may_open(), "no step may be opened");
  const auto step = next();
  const auto num_tasks = static_cast<std::uint32_t>(graph_->tasks.size());
  steps_.push_back({.open_needs = std::vector<std::uint32_t>(num_tasks, 0),
                    .finished = std::vector<bool>(num_tasks, false),
                    .unfinished = 0});
  auto& opened = steps_.back();
  for (std::uint32_t i = 0; i < num_tasks; ++i) {
    if (!exists(std::int64_t{step}, i)) {
      opened.finished[i] = true;
      continue;
    }
    ++opened.unfinished;
    for (const auto& need : graph_->tasks[i].needs)
      opened.open_needs[i]
        += !is_met(std::int64_t{step} - need.steps_back, need.task);
    if (opened.open_needs[i] == 0)
      ready.push_back({i, StepId{step}});
  }
}

void TaskTracker::finish(TaskRef task, std::vector<TaskRef>& ready) {
  TROUPE_CHECK(is_ready(task),
               fmt::format("{} of step {} cannot finish now",
                           graph_->tasks[task.task].name, task.step.value));
  auto& step = steps_[task.step.value - oldest_];
  step.finished[task.task] = true;
  --step.unfinished;
  for (auto i = successor_begin_[task.task];
       i < successor_begin_[task.task + 1]; ++i) {
    const auto& successor = successors_[i];
    const auto in_step = std::int64_t{task.step.value} + successor.steps_back;
    if (in_step < oldest_ || in_step >= next())
      continue;
    auto& waiting = steps_[static_cast<std::size_t>(in_step - oldest_)];
    if (!waiting.finished[successor.task]
        && --waiting.open_needs[successor.task] == 0)
      ready.push_back(
        {successor.task, StepId{static_cast<std::uint64_t>(in_step)}});
  }
  while (!steps_.empty() && steps_.front().unfinished == 0) {
    steps_.pop_front();
    ++oldest_;
  }
}

void TaskTracker::stop_opening(std::vector<TaskRef>& ready) {
  const auto moved = std::max<std::int64_t>(0, end_ - std::int64_t{next()});
  const auto existed = [&](std::int64_t step, std::uint32_t task) {
    return step < end_ + moved + ahead_[task];
  };
  end_ -= moved;
  beyond_ -= moved;
  for (std::size_t slot = 0; slot < steps_.size(); ++slot)
    for (std::uint32_t i = 0; i < graph_->tasks.size(); ++i) {
      const auto step = std::int64_t{oldest_} + static_cast<std::int64_t>(slot);
      const auto dropped
        = std::ranges::count_if(graph_->tasks[i].needs, [&](const Need& need) {
            const auto needed = step - need.steps_back;
            return existed(needed, need.task) && !exists(needed, need.task);
          });
      auto& open_needs = steps_[slot].open_needs[i];
      open_needs -= static_cast<std::uint32_t>(dropped);
      if (dropped > 0 && open_needs == 0)
        ready.push_back({i, StepId{static_cast<std::uint64_t>(step)}});
    }
}

bool TaskTracker::is_open(StepId step) const {
  return step.value >= oldest_ && step.value < next();
}

bool TaskTracker::is_ready(TaskRef task) const {
  if (!is_open(task.step) || task.task >= graph_->tasks.size())
    return false;
  const auto& step = steps_[task.step.value - oldest_];
  return !step.finished[task.task] && step.open_needs[task.task] == 0;
}

bool TaskTracker::is_finished(TaskRef task) const {
  return task.step.value < oldest_
         || (is_open(task.step)
             && steps_[task.step.value - oldest_].finished[task.task]);
}

bool TaskTracker::step_done(StepId step) const {
  return step.value < oldest_;
}

bool TaskTracker::all_done() const {
  return oldest_ >= end_;
}

std::optional<TaskTracker::Unmet> TaskTracker::first_unmet(TaskRef task) const {
  for (const auto& need : graph_->tasks[task.task].needs) {
    const auto step = std::int64_t{task.step.value} - need.steps_back;
    if (!is_met(step, need.task))
      return Unmet{{need.task, StepId{static_cast<std::uint64_t>(step)}},
                   need.edge};
  }
  return std::nullopt;
}

namespace {

std::string tracker_task_text(const StepGraph& graph, TaskRef task) {
  return fmt::format("{} of step {}", graph.tasks[task.task].name,
                     task.step.value);
}

/// Follows unmet needs until a task repeats, or a step is not open yet.
std::string tracker_circle(const StepGraph& graph, const TaskTracker& tracker) {
  TaskRef at{0, StepId{tracker.oldest()}};
  while (tracker.is_finished(at))
    ++at.task;
  std::vector<TaskRef> path;
  while (std::ranges::find(path, at) == path.end()) {
    path.push_back(at);
    if (!tracker.is_open(at.step))
      break;
    at = tracker.first_unmet(at)->whom;
  }
  path.erase(path.begin(), std::ranges::find(path, at));
  std::string text;
  for (const auto& task : path)
    text += tracker_task_text(graph, task) + " waits for ";
  return text + tracker_task_text(graph, at);
}

} // namespace

void check_graph_finishes(const StepGraph& graph) {
  if (graph.tasks.empty())
    return; // an evaluation without training
  // Needs reach max_lag + 1 steps back and max_lag forward: after that many
  // steps the pattern repeats.
  TaskTracker tracker(graph, StepId{0}, StepId{3 * graph.max_lag + 3});
  std::vector<TaskRef> ready;
  do {
    while (tracker.may_open())
      tracker.open_step(ready);
    if (ready.empty())
      throw PlanError(
        {.place = {},
         .path = "lag",
         .expected = "lags with which every step ends",
         .got = "a step that waits for itself ("
                + tracker_circle(graph, tracker) + ")",
         .hint = "less lag, or the same for the calls it reads from"});
    const auto task = ready.back();
    ready.pop_back();
    tracker.finish(task, ready);
  } while (!tracker.all_done());
}

} // namespace troupe::plans
