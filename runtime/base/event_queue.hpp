// Events of a session in the order in which they happened: actors, signal
// handlers and process watchers push, the session's own thread pops.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace troupe::runtime {

template <class Event>
class EventQueue {
public:
  void push(Event event) {
    {
      const std::lock_guard lock{mutex_};
      events_.push_back(std::move(event));
    }
    ready_.notify_one();
  }

  /// Returns the next event; nothing at `deadline`.
  std::optional<Event>
  pop_until(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock{mutex_};
    if (!ready_.wait_until(lock, deadline, [this] { return !events_.empty(); }))
      return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Event> events_;
};

} // namespace troupe::runtime
