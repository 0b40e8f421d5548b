// Which bytes go from where to where when weights move between two layouts.
// Boxes are intersected, so degrees need not divide each other. Among several
// owners of a region the sender is, in this order: the same device, one in the
// same worker, one on the same host, the one that sent least of its share,
// which is an equal part of what it and others as near own. A pure function of
// its arguments: every process computes the same plan and takes its own part.
// Every byte of every target box is written exactly once (I3).
#pragma once

#include "config/byte_runs.hpp"
#include "plans/execution_plan.hpp"
#include "plans/layout.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// From the sender's flat buffer to the receiver's. `from == to` is a copy
/// inside a device.
struct Transfer : ByteRuns {
  Rank from = {};
  Rank to = {};

  auto operator<=>(const Transfer&) const = default;
};

/// All transfers, sorted by receiver and target offset of the first run,
/// neighbours joined.
/// Padding between parameters may be written too, from padding. Throws
/// InvariantError when the source does not own what the target needs, or dtypes
/// differ.
std::vector<Transfer> move_plan(const Layout& source, const Layout& target,
                                const Cluster& cluster);

/// What one device receives, in plan order.
std::vector<Transfer> transfers_to(std::span<const Transfer> plan, Rank device);
/// Bytes that leave their device.
std::uint64_t moved_bytes(std::span<const Transfer> plan);

} // namespace troupe::plans
