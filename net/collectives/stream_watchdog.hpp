// Watches one member's calls on streams, for which no host waits (I7): a thread
// looks at the first that has not ended, and ends the group when that does not
// end in time, or when the group has failed. A call's time begins when its
// stream has come to it, so kernels before it do not count.
#pragma once

#include "config/base/awake_clock.hpp"
#include "config/base/error.hpp"
#include "net/collectives/group_control.hpp"
#include "net/collectives/nccl_library.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::net {

/// A call with events of its stream. Not those of a capture, which nobody may
/// ask about.
struct WatchedCall {
  std::uint64_t number = 0; ///< from 1, in the order of the calls
  CallMark mark;
  CudaEvent reached = nullptr; ///< the stream has come to the call
  CudaEvent ended = nullptr;
};

class StreamWatchdog {
public:
  struct Spec {
    std::string who; ///< for messages
    int device = 0;  ///< its number in this process
    std::chrono::milliseconds progress_deadline{0};
    /// Returns why the group has ended, or what NCCL says is wrong during the
    /// call of this name.
    std::function<std::optional<Failure>(const std::string& name)> failure;
    /// Ends the group; called by the thread.
    std::function<void(const Failure&)> abort;
  };

  StreamWatchdog(Spec spec, const NcclLibrary& library);
  /// Calls must have ended, or their communicator.
  ~StreamWatchdog();
  StreamWatchdog(const StreamWatchdog&) = delete;
  StreamWatchdog& operator=(const StreamWatchdog&) = delete;

  /// Returns the next call, whose events are to be recorded.
  WatchedCall next(const CallMark& mark);
  /// Watches a call that was enqueued.
  void watch(const WatchedCall& call);
  /// Returns the event of the call's end; null: it has ended.
  CudaEvent end_of(std::uint64_t number);

private:
  using Clock = AwakeClock;

  void work();
  /// Returns why the first call ends the group: it is late, or CUDA failed.
  std::optional<Failure> overdue();
  /// Returns CUDA's result: 0, not ready, or an error.
  int query(CudaEvent event) const;
  void forget_ended();
  CudaEvent take_event();

  const Spec spec_;
  const NcclLibrary& library_;
  std::mutex mutex_; ///< not held while the thread calls the functions of Spec
  std::condition_variable changed_;
  std::uint64_t last_number_ = 0;
  std::deque<WatchedCall> calls_; ///< that had not ended when last looked at
  std::vector<CudaEvent> idle_;   ///< events for reuse
  /// The call that was first when last looked at, and since when its stream has
  /// been at it.
  std::uint64_t first_ = 0;
  std::optional<Clock::time_point> since_;
  bool has_failed_ = false; ///< nothing is watched any more
  bool closing_ = false;
  std::thread thread_; ///< started by the first call
};

} // namespace troupe::net
