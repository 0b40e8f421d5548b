// Which bytes are sent from where to where when weights move between two
// layouts. Boxes are intersected, so degrees need not divide each other. Among
// several owners of a region the sender is, in this order: the same device, one
// in the same worker, one on the same host, the one that has sent least
// relative to its share, which is an equal part of what it and equally near
// owners hold. A pure function of its arguments: every process computes the
// same plan and executes its own part. Every byte of every target box is
// written exactly once (I3).
#pragma once

#include "config/base/byte_runs.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/weights/layout.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// Bytes from the sender's flat buffer to the receiver's. `from == to` is a
/// copy inside a device.
struct Transfer : ByteRuns {
  Rank from = {};
  Rank to = {};
  bool rounded = false; ///< fp32 at both ends, bf16 on its way

  auto operator<=>(const Transfer&) const = default;
};

/// Returns all transfers, sorted by receiver and target offset of the first
/// run, adjacent ones joined. Padding between parameters may be written too,
/// from padding. Throws InvariantError if the source does not own what the
/// target needs, or dtypes differ. `rounded` says of each parameter whether it
/// is sent in bf16 between hosts; empty: none is.
std::vector<Transfer> move_plan(const Layout& source, const Layout& target,
                                const Cluster& cluster,
                                const std::vector<bool>& rounded = {});

/// Returns the transfers to one device, in plan order.
std::vector<Transfer> transfers_to(std::span<const Transfer> plan, Rank device);
/// Returns the bytes that leave their device.
std::uint64_t moved_bytes(std::span<const Transfer> plan);

} // namespace troupe::plans
