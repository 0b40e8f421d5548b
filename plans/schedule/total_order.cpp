#include "plans/schedule/total_order.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

namespace troupe::plans {

namespace {

template <class T>
void order_push(std::vector<T>& heap, T value) {
  heap.push_back(std::move(value));
  std::ranges::push_heap(heap, std::greater<>{});
}

template <class T>
T order_pop(std::vector<T>& heap) {
  std::ranges::pop_heap(heap, std::greater<>{});
  T value = std::move(heap.back());
  heap.pop_back();
  return value;
}

bool gives_back(const TaskTemplate& task) {
  return task.kind == TaskKind::offload || task.kind == TaskKind::drop;
}

bool brings_planes(const TaskTemplate& task) {
  return task.right_before.has_value();
}

/// Returns the graph with tasks that load planes for a call placed after all
/// other needs of the call; nullptr if there are none. Calls are in an order
/// that respects their edges, and the new edges lead to calls before the first
/// that reads the planes: no cycle.
std::unique_ptr<const StepGraph> beside_calls(const StepGraph& graph) {
  if (std::ranges::none_of(graph.tasks, brings_planes))
    return nullptr;
  auto ordered = std::make_unique<StepGraph>(graph);
  for (auto& task : ordered->tasks) {
    if (!task.right_before)
      continue;
    for (const auto& need : graph.tasks[*task.right_before].needs)
      if (graph.tasks[need.task].right_before != task.right_before)
        task.needs.push_back(need);
  }
  return ordered;
}

/// Returns whether `task` waits for planes that are loaded for the same call,
/// or for itself.
bool is_right_behind(const StepGraph& graph, std::uint32_t task) {
  const auto call = graph.tasks[task].right_before.value_or(task);
  return std::ranges::any_of(graph.tasks[task].needs, [&](const Need& need) {
    return need.steps_back == 0 && graph.tasks[need.task].right_before == call;
  });
}

} // namespace

std::vector<double> longest_paths(const StepGraph& graph,
                                  std::span<const double> durations_s) {
  const auto num_tasks = graph.tasks.size();
  std::vector<std::uint32_t> open_successors(num_tasks, 0);
  for (const auto& task : graph.tasks)
    for (const auto& need : task.needs)
      open_successors[need.task] += need.steps_back == 0;
  std::vector<std::uint32_t> last;
  for (std::uint32_t i = 0; i < num_tasks; ++i)
    if (open_successors[i] == 0)
      last.push_back(i);
  std::vector<double> behind_s(num_tasks, 0);
  for (std::size_t done = 0; done < last.size(); ++done) {
    const auto i = last[done];
    behind_s[i] += durations_s[i];
    for (const auto& need : graph.tasks[i].needs) {
      if (need.steps_back != 0)
        continue;
      behind_s[need.task] = std::max(behind_s[need.task], behind_s[i]);
      if (--open_successors[need.task] == 0)
        last.push_back(need.task);
    }
  }
  TROUPE_CHECK(last.size() == num_tasks, "tasks wait for each other");
  return behind_s;
}

TotalOrder::TotalOrder(const StepGraph& graph, StepId first, StepId end,
                       std::span<const double> durations_s)
  : beside_calls_(beside_calls(graph)),
    graph_(beside_calls_ ? beside_calls_.get() : &graph),
    tracker_(*graph_, first, end),
    durations_s_(durations_s.begin(), durations_s.end()),
    is_next_(graph.tasks.size(), false) {
  if (durations_s_.empty())
    durations_s_.assign(graph.tasks.size(), 1.0);
  TROUPE_CHECK(durations_s_.size() == graph.tasks.size(),
               "one predicted duration a task");
  paths_s_ = longest_paths(*graph_, durations_s_);
  for (std::uint32_t i = 0; i < graph.tasks.size(); ++i) {
    if (gives_back(graph.tasks[i]))
      paths_s_[i] = std::numeric_limits<double>::infinity();
    is_next_[i] = is_right_behind(graph, i);
  }
  std::map<Rank, std::uint32_t> dense;
  devices_.resize(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i)
    for (const auto rank : graph.tasks[i].devices)
      devices_[i].push_back(
        dense.try_emplace(rank, static_cast<std::uint32_t>(dense.size()))
          .first->second);
  busy_.resize(dense.size(), 0);
  waiting_.resize(dense.size());
}

std::optional<TaskRef> TotalOrder::next() {
  while (emitted_.empty() && !tracker_.all_done())
    advance();
  if (emitted_.empty())
    return std::nullopt;
  const auto task = emitted_.front();
  emitted_.pop_front();
  return task;
}

void TotalOrder::advance() {
  if (!running_.empty())
    finish_earliest();
  do {
    while (tracker_.may_open())
      tracker_.open_step(ready_);
    take_ready();
  } while (tracker_.may_open());
  run_candidates();
  TROUPE_CHECK(!running_.empty() || tracker_.all_done(),
               "no task of the order can start");
}

/// Returns whether a task takes no time. As a normal task it would occupy its
/// devices for a moment, in which a call on these and other devices would lose
/// the others to a less important call.
bool TotalOrder::takes_no_time(TaskRef task) const {
  return gives_back(graph_->tasks[task.task]) && durations_s_[task.task] == 0;
}

void TotalOrder::take_ready() {
  for (std::size_t i = 0; i < ready_.size(); ++i) { // grows during the loop
    const auto task = ready_[i];
    if (!takes_no_time(task)) {
      add_candidate(task);
      continue;
    }
    emitted_.push_back(task);
    tracker_.finish(task, ready_);
  }
  ready_.clear();
}

void TotalOrder::add_candidate(TaskRef task) {
  const auto step = std::int64_t{task.step.value};
  order_push(candidates_, {.priority = {.step = is_next_[task.task] ? -1 : step,
                                        .minus_path_s = -paths_s_[task.task],
                                        .task = task},
                           .from = no_device});
}

/// Finishes all tasks that end next; wakes one waiter per freed device.
void TotalOrder::finish_earliest() {
  now_s_ = running_.front().end_s;
  std::vector<std::uint32_t> freed;
  while (!running_.empty() && running_.front().end_s <= now_s_) {
    const auto task = order_pop(running_).task;
    tracker_.finish(task, ready_);
    for (const auto device : devices_[task.task]) {
      busy_[device] = 0;
      freed.push_back(device);
    }
  }
  for (const auto device : freed)
    wake_next(device);
}

void TotalOrder::wake_next(std::uint32_t device) {
  if (!waiting_[device].empty())
    order_push(candidates_, {order_pop(waiting_[device]), device});
}

/// Starts each candidate whose devices are all idle; others wait for a busy
/// one, and the idle device that woke them wakes its next waiter.
void TotalOrder::run_candidates() {
  const auto is_busy = [&](std::uint32_t device) { return busy_[device] != 0; };
  while (!candidates_.empty()) {
    const auto candidate = order_pop(candidates_);
    const auto& devices = devices_[candidate.priority.task.task];
    const auto blocked = std::ranges::find_if(devices, is_busy);
    if (blocked == devices.end()) {
      start(candidate.priority.task);
      continue;
    }
    order_push(waiting_[*blocked], candidate.priority);
    if (candidate.from != no_device && !busy_[candidate.from])
      wake_next(candidate.from);
  }
}

void TotalOrder::start(TaskRef task) {
  for (const auto device : devices_[task.task])
    busy_[device] = 1;
  order_push(running_, {now_s_ + durations_s_[task.task], started_++, task});
  emitted_.push_back(task);
}

} // namespace troupe::plans
