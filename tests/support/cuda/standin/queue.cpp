#include "queue.hpp"

#include "memory.hpp"
#include "state.hpp"

#include <exception>
#include <utility>

namespace troupe::standin {

std::recursive_mutex& mutex() {
  static auto& only = *new std::recursive_mutex; // used until the very end
  return only;
}

Queue& queue() {
  static auto& only = *new Queue;
  return only;
}

NodePtr Queue::add(Work work, const std::vector<NodePtr>& after,
                   std::size_t holds) {
  const Lock lock(mutex());
  auto node = std::make_shared<Node>();
  node->work = std::move(work);
  node->missing = holds;
  for (const NodePtr& before : after) {
    if (before == nullptr || before->is_done)
      continue;
    before->next.push_back(node);
    ++node->missing;
  }
  ++waiting_;
  if (node->missing == 0)
    ready_.push_back(node);
  changed_.notify_all();
  return node;
}

void Queue::release(const NodePtr& node) {
  const Lock lock(mutex());
  if (!node->is_done && --node->missing == 0) {
    ready_.push_back(node);
    changed_.notify_all();
  }
}

void Queue::finish(const NodePtr& node) {
  node->is_done = true;
  --waiting_;
  for (const NodePtr& next : std::exchange(node->next, {}))
    if (--next->missing == 0)
      ready_.push_back(next);
  changed_.notify_all();
}

void Queue::run_one() {
  const std::size_t drawn = random_() % ready_.size();
  std::swap(ready_[drawn], ready_.back());
  const NodePtr node = std::move(ready_.back());
  ready_.pop_back();
  Work work = std::move(node->work);
  try {
    if (work.body && memory().may_access(work))
      work.body();
  } catch (const std::exception& error) {
    fault(cudaErrorLaunchFailure, work.name + ": " + error.what());
  }
  finish(node);
}

void Queue::run_until(const NodePtr& node) {
  Lock lock(mutex());
  while (node != nullptr && !node->is_done) {
    if (ready_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const DeviceAccess access;
    while (!node->is_done && !ready_.empty())
      run_one();
  }
}

void Queue::run_ready() {
  const Lock lock(mutex());
  const DeviceAccess access;
  while (!ready_.empty())
    run_one();
}

void Queue::run_some(std::size_t count) {
  const Lock lock(mutex());
  const DeviceAccess access;
  for (std::size_t i = 0; i < count && !ready_.empty(); ++i)
    run_one();
}

void Queue::seed(std::uint64_t seed) {
  const Lock lock(mutex());
  random_.seed(seed);
}

} // namespace troupe::standin
