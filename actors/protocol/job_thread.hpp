// A thread that runs its jobs in the order of arrival: one per device, and one
// per worker for host functions. Actors post jobs and are notified of the end
// by a message; nothing here knows actors or tensors. Tensors that a job
// allocates are counted as the device's memory.
#pragma once

#include "config/trace/trace.hpp"
#include "net/base/memory_count.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace troupe::actors {

class JobThread {
public:
  using Job = std::function<void()>;

  /// `name` is its track in the trace: "device 3", "host 0".
  explicit JobThread(std::string name);
  /// Finishes the running job, drops the queued ones. A job may hold the last
  /// reference to what owns this object: then the thread ends after that job.
  ~JobThread();
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  /// Queues `job`, which must not throw. Callable from any thread.
  void post(Job job);
  /// Drops queued jobs and raises the stop flag that engines check.
  void abort();

  const std::string& name() const;
  trace::Track track() const;
  const std::atomic<bool>& stop_flag() const;
  /// Returns a counter that grows as the running job progresses; deadlines are
  /// based on it.
  std::atomic<std::uint64_t>& progress();
  net::MemoryCount& memory();

private:
  struct State;

  /// Shared with the thread, which may outlive this object.
  std::shared_ptr<State> state_;
  std::thread thread_;
};

} // namespace troupe::actors
