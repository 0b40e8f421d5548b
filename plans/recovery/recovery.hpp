// Decides what a run does after a failure: start its workers again and continue
// from the newest checkpoint, or end. A pure function of how its attempts
// ended; the session carries it out (docs/failure.md, "Recovery").
#pragma once

#include "config/base/error.hpp"
#include "config/base/ids.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe::plans {

/// How one attempt at a run ended by a failure.
struct FailedAttempt {
  Failure failure;
  std::optional<WorkerId> worker; ///< whose loss ended it; none: not known
  StepId step{0};                 ///< first step that was not committed
  StepId saved{0};      ///< committed steps in the newest checkpoint afterwards
  bool started = false; ///< whether all workers had loaded
  bool killed = false;  ///< whether a signal ended the worker
  bool lost_snapshot = false; ///< a host's memory had not what was to be loaded
  /// The node whose workers did not come, if that ended it before it started.
  std::optional<std::uint32_t> absent_node = {};
};

/// The ways to continue when a node does not come back (`cluster.lost_node`).
enum class LostNode : std::uint8_t { fail, wait, shrink };

struct RecoveryRules {
  std::uint32_t max_restarts = 0;
  LostNode lost_node = LostNode::fail;
  std::uint32_t nodes = 1; ///< of the last attempt
};

struct RecoveryDecision {
  bool recovers = false;
  /// Time before the next attempt, for a node to come back; 0: it is not waited
  /// for.
  std::chrono::seconds wait{0};
  std::optional<std::uint32_t> without_node = {}; ///< the next attempt's plan
                                                  ///< has one node less
  /// Why it gives up although it has recovered, or could; empty: nothing to add
  /// to the failure.
  std::string reason = {};
};

/// Decides after the last of `attempts`, the failed attempts of one master in
/// order. It recovers from lost, hung and silent workers, and from a snapshot
/// that was lost with its host; never from bad input, a full disk or a bug,
/// which would come again. It gives up after
/// `max_restarts` without a newer checkpoint, when the same step ends the same
/// worker twice in a row, and when the first attempt never started. A node that
/// does not come back after a failure is waited for, longer from attempt to
/// attempt, or done without.
RecoveryDecision decide_recovery(std::span<const FailedAttempt> attempts,
                                 const RecoveryRules& rules);

} // namespace troupe::plans
