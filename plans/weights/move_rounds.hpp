// The part of a move that goes between hosts, cut into rounds that each fit the
// staging memory: what one member of the group of its senders and receivers
// sends and receives in each (Collectives::exchange). A transfer whose runs are
// apart is packed into one piece by its sender and unpacked by its receiver;
// contiguous bytes go from plane to plane. What is rounded on its way is in
// staging memory at both ends, in bf16. A pure function of the plan: every
// member computes its own part, and both ends of a pair list the same pieces.
#pragma once

#include "plans/weights/move_plan.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// The transfers of a move by the way they can go.
struct MoveParts {
  std::vector<Transfer> within;  ///< inside of hosts
  std::vector<Transfer> between; ///< from host to host
};
MoveParts by_host(std::span<const Transfer> plan, const Cluster& cluster);

/// Returns the devices that send or receive, ascending: a group's members.
std::vector<Rank> ends_of(std::span<const Transfer> transfers);

/// Bytes that travel as one piece, at one of its ends.
struct MovePiece {
  std::uint32_t peer = 0; ///< index of the other end among the members
  /// Sent: from the plane to staging memory; received: from there to the plane.
  /// `bytes` are those in the plane.
  ByteRuns runs;
  bool in_place = false; ///< contiguous in the plane: needs no staging
  bool rounded = false;  ///< bf16 in staging memory, fp32 in the plane

  /// Returns the bytes that are sent.
  std::uint64_t wire_bytes() const {
    return rounded ? runs.total_bytes() / 2 : runs.total_bytes();
  }
};

struct MoveRound {
  std::vector<MovePiece> sent;
  std::vector<MovePiece> received;
  std::uint64_t staged_bytes = 0; ///< at most the staging memory
};

/// Returns the rounds of `self`, one of the `members`: as many as all others
/// have, so some may be empty.
std::vector<MoveRound> move_rounds(std::span<const Transfer> transfers,
                                   std::span<const Rank> members, Rank self,
                                   std::uint64_t staging_bytes);

} // namespace troupe::plans
