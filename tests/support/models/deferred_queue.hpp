// The kernels of a deferred device that have not run yet, in the order of the
// calls. It captures graphs: kernels of a capture run with the arguments of
// that time. An operation that a GPU refuses during capture throws
// std::logic_error.
#pragma once

#include "models/kernels/graph_capture.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace troupe::testing {

/// Throws if this thread captures.
void not_in_a_capture(const char* what);

/// Returns a host table that a kernel keeps until it runs.
template <class T>
std::vector<T> kept_table(std::span<const T> values) {
  return {values.begin(), values.end()};
}

class DeferredQueue {
public:
  /// Defers a kernel; returns how many have to run until it has.
  std::uint64_t later(std::function<void()> kernel);
  /// Defers a kernel with host tables, which differ from call to call.
  std::uint64_t later_with_tables(std::function<void()> kernel);
  void run_all();
  /// Runs kernels until so many have run.
  void run_until(std::uint64_t count);
  std::unique_ptr<models::GraphRecorder> make_recorder();

  /// Returns the number of all captures so far.
  int recorded() const {
    return recorded_;
  }
  int replayed() const {
    return replayed_;
  }
  /// Returns the number of all kernels, copies and graphs launched so far.
  int launched() const {
    return launched_;
  }
  /// Returns how often the host waited until no kernel was left, so that the
  /// device had nothing to do.
  int emptied() const {
    return emptied_;
  }

private:
  friend class DeferredRecorder;
  friend class DeferredGraph;

  std::recursive_mutex mutex_;
  std::deque<std::function<void()>> kernels_;
  std::atomic<int> recorded_ = 0;
  std::atomic<int> replayed_ = 0;
  std::atomic<int> launched_ = 0;
  std::atomic<int> emptied_ = 0;
  std::uint64_t done_ = 0; ///< kernels that have run
};

} // namespace troupe::testing
