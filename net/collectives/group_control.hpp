// State that the members of a group on one host share, in the heap or in a
// memory segment: a barrier that abort() wakes, the first failure, and who has
// arrived. All zeros is the initial state, so a fresh segment is usable by
// whoever maps it first.
#pragma once

#include "config/base/awake_clock.hpp"
#include "config/base/error.hpp"
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/peer_processes.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::net {

inline constexpr std::size_t kMaxHostMembers = 256;

/// One collective call, written by its member before the first barrier so that
/// all can check that they make the same call.
struct CallMark {
  std::uint64_t count = 0;
  std::uint32_t root = 0;
  std::uint8_t operation = 0; ///< a GroupOperation
  std::uint8_t dtype = 0;
  char name[50] = {};
  bool operator==(const CallMark&) const = default;
};
enum class GroupOperation : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  barrier,
  graph, ///< captured calls, launched together
};
CallMark make_call_mark(GroupOperation operation, std::size_t count,
                        DType dtype, std::uint32_t root, const char* name);
std::string to_string(const CallMark& mark);

struct alignas(64) MemberMark {
  std::atomic<std::uint32_t> arrived_at; ///< last barrier reached, + 2
  std::atomic<std::int32_t> pid;         ///< 0: not attached yet
  CallMark calls[2]; ///< indexed by parity of the call's number
};

struct GroupControl {
  /// Bit 0: aborted. The rest counts barriers; it is the futex word.
  alignas(64) std::atomic<std::uint32_t> generation;
  alignas(64) std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint32_t> attached;
  /// Members that currently access others' memory (threads only).
  std::atomic<std::uint32_t> touching;
  std::atomic<std::uint32_t>
    failure_state; ///< 0 none, 1 being written, 2 complete
  std::uint8_t failure_code;
  char failure_who[120];
  char failure_what[400];
  char failure_cause[400];
  MemberMark members[kMaxHostMembers];
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// One member's view of a control block. Not thread-safe except for abort() and
/// failure().
class GroupWaiter {
public:
  /// Creates a view; `processes` finds the processes of other members, nullptr
  /// if all members are in this process.
  GroupWaiter(GroupControl& control, const GroupSpec& spec,
              std::shared_ptr<PeerProcesses> processes);
  GroupWaiter(const GroupWaiter&) = delete;
  GroupWaiter& operator=(const GroupWaiter&) = delete;

  /// Marks this member as attached; returns true for the last one. Throws
  /// InvariantError if more attach than there are members.
  bool attach();
  /// Records the call; the next `barrier` also compares the calls of all
  /// members.
  void begin_call(const CallMark& mark);
  /// Waits for all members. Throws FailureError.
  void barrier();
  /// Records the first failure and wakes all members; callable from any thread.
  void abort(const Failure& failure) noexcept;
  bool aborted() const noexcept;
  /// Returns the group's failure, without waiting: also that the process of a
  /// member has ended, for which it looks at intervals. Callable from any
  /// thread.
  std::optional<Failure> failure();
  /// Throws the group's failure.
  [[noreturn]] void throw_failure() const;

private:
  void wait_for(std::uint32_t generation);
  void compare_calls();
  void check_peers(const std::string& during);
  bool is_time_to_look();
  Failure group_failure() const;
  std::string member_text(std::size_t rank) const;
  std::string absent_members(std::uint32_t generation) const;

  GroupControl& control_;
  const GroupSpec spec_;
  std::uint32_t calls_ = 0;
  bool compare_next_ = false;
  CallMark call_;
  std::shared_ptr<PeerProcesses> processes_;
  std::mutex looking_; ///< of all below
  /// By rank: processes of other members, looked up at the first check.
  std::vector<std::shared_ptr<const PeerProcess>> peers_;
  AwakeClock::time_point last_look_{}; ///< of `failure` at the peers
};

} // namespace troupe::net
