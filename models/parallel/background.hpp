// A thread next to the device thread that runs jobs in order: for collectives
// that overlap with computing. The thread starts with the first
// job.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace troupe::models {

/// Used by one thread. After a job threw, later ones are dropped until `wait`
/// has reported it.
class Background {
public:
  /// `at_start` is the first that the thread runs.
  explicit Background(std::function<void()> at_start = [] {})
    : at_start_(std::move(at_start)) {}
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Queues the job and returns its number, counted from 1.
  std::uint64_t run(std::function<void()> job);
  /// Returns when the job of that number is done; rethrows what a job threw.
  void wait(std::uint64_t job);
  /// Waits for all jobs.
  void wait() {
    wait(given_);
  }

private:
  void work();

  std::function<void()> at_start_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::uint64_t given_ = 0; ///< jobs queued so far
  std::uint64_t done_ = 0;
  std::exception_ptr failure_;
  bool closing_ = false;
  std::thread thread_;
};

} // namespace troupe::models
