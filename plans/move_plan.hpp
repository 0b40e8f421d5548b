// Which bytes go from where to where when weights move between two layouts.
// Boxes are intersected, so degrees need not divide each other. Among several
// owners of a region the sender is, in this order: the same device, one in the
// same worker, one on the same host, the one that sends least so far. A pure
// function of its arguments: every process computes the same plan and takes its
// own part of it. Every byte of every target box is written exactly once (I3).
#pragma once

#include "plans/execution_plan.hpp"
#include "plans/layout.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// Runs of bytes, equally far apart on either side: the columns of a matrix are
/// one run a row. `from == to` is a copy inside a device.
struct Transfer {
  Rank from = {};
  Rank to = {};
  std::uint64_t source_offset = 0; ///< in the sender's flat buffer
  std::uint64_t target_offset = 0; ///< in the receiver's flat buffer
  std::uint64_t bytes = 0;         ///< of one run
  std::uint64_t runs = 1;
  std::uint64_t source_stride = 0; ///< from run to run; 0 of a single one
  std::uint64_t target_stride = 0;

  auto operator<=>(const Transfer&) const = default;
  std::uint64_t total_bytes() const {
    return runs * bytes;
  }
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
