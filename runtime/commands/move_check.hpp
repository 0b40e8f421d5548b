// `troupe doctor`: weights of a random model are moved back and forth between
// two halves of the devices, over worker processes as in a run, checksums
// compared.
#pragma once

#include "actors/calls/move_check_result.hpp"
#include "config/base/error.hpp"
#include "config/settings/settings.hpp"

#include <variant>

namespace troupe::runtime {

struct MoveCheckPlan {
  std::uint32_t devices = 2; ///< of this host; at least two
  std::uint32_t workers = 2;
  std::chrono::duration<double> at_least{5};
};

/// Returns the devices and workers of a configuration, as far as it names them.
MoveCheckPlan move_check_plan(const Settings& settings);

/// Moves weights; returns the amount moved, or why that failed.
std::variant<actors::MoveCheckResult, Failure>
check_moves(const MoveCheckPlan& plan);

} // namespace troupe::runtime
