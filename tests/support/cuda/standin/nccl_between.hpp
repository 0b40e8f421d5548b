// Calls of NCCL among GPUs of several processes: each member's numbers go to
// the hub of tests/support/nccl when its stream has arrived, and what the hub
// answers is the work for which the stream waits. As all get all members'
// numbers, the body that joins them is the one of groups within a process.
#pragma once

#include "standin.hpp"
#include "tests/support/nccl/rank_hub.hpp"

#include <functional>
#include <map>
#include <string>

namespace troupe::standin {

/// Memory that a member brings to a call.
struct Call {
  const void* from = nullptr;
  void* to = nullptr;
};
/// Work over the calls of all members, by rank.
using JoinCalls = std::function<void(const std::map<int, Call>&)>;

/// A call of this process's member.
struct FarCall {
  std::string name;
  Call memory;
  std::size_t from_bytes = 0;
  std::size_t to_bytes = 0;
  int sender = -1; ///< of a send or receive
  int receiver = -1;
  JoinCalls body;
};

/// Returns what this member's part reads and writes.
std::vector<Range> ranges_of(const FarCall& call);

/// A member's link to the hub of its group.
class FarMember {
public:
  /// Goes to the group of the id, which open_hub made, without waiting.
  FarMember(const std::string& id, int size, int rank);

  /// Makes a call for the stream at this seat.
  void call(const FarCall& call, const Seat& seat);
  /// Leaves the group: streams go on, without the work.
  void abort();
  /// Returns NCCL's state: in progress until all have come.
  int state();
  void wait_until_joined();

private:
  fake_nccl::RankLink* link_; ///< never deleted, as its threads use it
  int size_;
  int rank_;
  /// Counts of sends and receives, by name: those of a group of calls run in
  /// any order, and yet meet each other in the order of calls.
  std::map<std::string, std::uint64_t> pairs_;
};

} // namespace troupe::standin
