// The report of the self-test of moves, for commands that show it: they need no
// actor and no message.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::actors {

/// The amount that was moved.
struct MoveCheckResult {
  std::uint32_t moves = 0;
  std::uint64_t bytes = 0;      ///< over all moves and targets
  std::uint64_t wire_bytes = 0; ///< the part between processes
  std::chrono::duration<double> took{0};
};

} // namespace troupe::actors
