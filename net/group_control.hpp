// What the members of a group on one host share, in the heap or in a memory
// segment: a barrier that abort() wakes, the first failure, and who has come.
// All zeros is the initial state, so whoever maps a fresh segment may start.
#pragma once

#include "config/error.hpp"
#include "net/host_collectives.hpp"
#include "net/peer_processes.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::net {

inline constexpr std::size_t kMaxHostMembers = 256;

/// One collective call, written by its member before the first barrier so that
/// all can see that they do the same.
struct CallMark {
  std::uint64_t count = 0;
  std::uint32_t root = 0;
  std::uint8_t operation = 0; ///< of GroupOperation
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
};
CallMark make_call_mark(GroupOperation operation, std::size_t count,
                        DType dtype, std::uint32_t root, const char* name);
std::string to_string(const CallMark& mark);

struct alignas(64) MemberMark {
  std::atomic<std::uint32_t> arrived_at; ///< barrier number it came to, + 2
  std::atomic<std::int32_t> pid;         ///< 0: not attached yet
  CallMark calls[2];                     ///< by parity of the call's number
};

struct GroupControl {
  /// Bit 0: aborted. The rest counts barriers; it is the futex word.
  alignas(64) std::atomic<std::uint32_t> generation;
  alignas(64) std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint32_t> attached;
  /// Members that touch others' memory now (threads only).
  std::atomic<std::uint32_t> touching;
  std::atomic<std::uint32_t>
    failure_state; ///< 0 none, 1 being written, 2 there
  std::uint8_t failure_code;
  char failure_who[120];
  char failure_what[400];
  char failure_cause[400];
  MemberMark members[kMaxHostMembers];
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// One member's view of a control block. Not thread-safe but for abort().
class GroupWaiter {
public:
  /// `processes`: where members of other processes are looked up; nullptr for
  /// a group whose members are all in this one.
  GroupWaiter(GroupControl& control, const GroupSpec& spec,
              std::shared_ptr<PeerProcesses> processes);
  GroupWaiter(const GroupWaiter&) = delete;
  GroupWaiter& operator=(const GroupWaiter&) = delete;

  /// Marks this member as attached; true for the last one. Throws
  /// InvariantError when more came than there are members.
  bool attach();
  /// Writes down the call; the next `barrier` also compares all members' calls.
  void begin_call(const CallMark& mark);
  /// Waits for all members. Throws FailureError.
  void barrier();
  /// First failure wins; wakes everybody. From any thread.
  void abort(const Failure& failure) noexcept;
  bool aborted() const noexcept;
  /// Throws the group's failure.
  [[noreturn]] void throw_failure() const;

private:
  void wait_for(std::uint32_t generation);
  void compare_calls();
  void check_peers();
  std::string member_text(std::size_t rank) const;
  std::string absent_members(std::uint32_t generation) const;

  GroupControl& control_;
  const GroupSpec spec_;
  std::uint32_t calls_ = 0;
  bool compare_next_ = false;
  CallMark call_;
  std::shared_ptr<PeerProcesses> processes_;
  /// By rank: of members in other processes, from the first look on.
  std::vector<std::shared_ptr<const PeerProcess>> peers_;
};

} // namespace troupe::net
