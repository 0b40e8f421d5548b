// A thread that does its jobs in the order of arrival: one per device, and one
// per worker for host functions. Actors post jobs and hear of the end by a
// message; nothing here knows actors or tensors. What tensors a job makes is
// counted as the device's memory.
#pragma once

#include "config/trace.hpp"
#include "net/memory_count.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace troupe::actors {

class DeviceThread {
public:
  using Job = std::function<void()>;

  /// `name` is its row in the trace: "device 3", "host 0".
  explicit DeviceThread(std::string name);
  /// Finishes the running job, drops the queued ones.
  ~DeviceThread();
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;

  /// Queues `job`, which must not throw. Callable from any thread.
  void post(Job job);
  /// Drops queued jobs and raises the stop flag that engines look at.
  void abort();

  const std::string& name() const {
    return name_;
  }
  trace::Track track() const {
    return track_;
  }
  const std::atomic<bool>& stop_flag() const {
    return stop_;
  }
  /// Grows whenever the running job gets on: deadlines look at this.
  std::atomic<std::uint64_t>& progress() {
    return progress_;
  }

  net::MemoryCount& memory() {
    return memory_;
  }

private:
  void loop();

  std::string name_;
  trace::Track track_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> progress_{0};
  net::MemoryCount memory_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Job> jobs_;
  bool ending_ = false;
  std::thread thread_; ///< last: starts when all else is there
};

} // namespace troupe::actors
