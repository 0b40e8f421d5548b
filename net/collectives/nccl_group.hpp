// One member's communicator of NCCL and a stream of its own for calls.
// NCCL's calls never wait here: the communicator is not blocking, and this
// member asks NCCL and the stream how far they are, until a deadline, an error
// of NCCL, a failure of the other members, or an abort from any thread (I7).
#pragma once

#include "config/base/awake_clock.hpp"
#include "config/base/error.hpp"
#include "net/collectives/nccl_library.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::net {

/// A member's place in its group.
struct NcclPlace {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
};

class NcclGroup {
public:
  struct Spec {
    std::string who; ///< for messages
    int device = 0;  ///< its number in this process
    std::chrono::milliseconds progress_deadline{0};
    /// Returns the failure of other members, which waits look for.
    std::function<std::optional<Failure>()> failure_of_others;
  };
  /// Starts calls on the stream; returns NCCL's result.
  using Start = std::function<int(NcclCommunicator, CudaStream)>;

  NcclGroup(Spec spec, const NcclLibrary& library);
  /// Aborts what is still in flight.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  bool has_joined() const noexcept {
    return has_joined_;
  }
  /// Joins the group of this id, which all members do. Throws FailureError.
  void join(const NcclId& id, NcclPlace place);
  /// Runs `start` and waits until the stream has done it. Throws FailureError;
  /// the caller then aborts the group.
  void run(const char* name, const Start& start);
  /// Runs `start` for that stream, and returns when NCCL has launched it.
  /// Throws likewise.
  void launch(const char* name, const Start& start, CudaStream stream);
  /// Returns the stream that `run` uses.
  CudaStream stream() const {
    return stream_;
  }
  /// Returns why the group ends, or what NCCL says is wrong, from any thread;
  /// nullopt as well if the member's thread is in a call of NCCL.
  std::optional<Failure> trouble(const std::string& name);
  /// Makes the member's device current for the calling thread.
  void use_device() const;
  /// Returns why the group has ended, if it has.
  std::optional<Failure> failure() const;
  /// Throws FailureError unless `result`, of NCCL, is success.
  void check(int result, const char* name) const;

  /// Ends the group without waiting for a call that starts: that call's thread
  /// then ends the communicator. The first failure is kept.
  void abort(const Failure& failure) noexcept;

private:
  using Clock = AwakeClock;

  /// Says if `use` waits while another thread calls NCCL.
  enum class IfInUse : std::uint8_t { wait, leave };

  template <class Use>
  int use(const Use& call, IfInUse then = IfInUse::wait);
  void wait_until_started(int result, const char* name,
                          Clock::time_point deadline);
  void wait_until_done(const char* name, Clock::time_point deadline);
  int state();
  int asked(NcclCommunicator communicator) const;
  void look_again(const char* name, Clock::time_point deadline);
  void throw_if_failed();
  void check_cuda(int result, const char* name) const;
  [[noreturn]] void fail(Errc code, const char* name,
                         const std::string& what) const;

  const Spec spec_;
  const NcclLibrary& library_;
  CudaStream stream_ = nullptr;
  bool has_joined_ = false;
  mutable std::mutex mutex_;        ///< never held during a call of NCCL
  std::condition_variable changed_; ///< aborted, or not in use any more
  /// Null while a thread calls NCCL with it.
  NcclCommunicator communicator_ = nullptr;
  bool is_in_use_ = false;
  std::optional<Failure> failure_;
};

} // namespace troupe::net
