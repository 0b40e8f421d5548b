// The self-test of moves: random weights go to and fro between two layouts for
// a few seconds, over the workers of a real run. Every move compares checksums
// (MoveSetup::check), so its end says that the bytes arrived.
// Parent: the session; it is idle once it has reported.
#pragma once

#include "actors/ask.hpp"

#include <array>
#include <functional>

namespace troupe::actors {

using MoveCheckActor = caf::typed_actor<caf::reacts_to<start_atom>, ask_failed>;

/// What was moved.
struct MoveCheckResult {
  std::uint32_t moves = 0;
  std::uint64_t bytes = 0;      ///< over all moves and targets
  std::uint64_t wire_bytes = 0; ///< of them between processes
  std::chrono::duration<double> took{0};
};

struct MoveCheckSetup {
  std::array<MoveActor, 2> moves; ///< there and back
  Incarnation incarnation;
  std::chrono::duration<double> at_least{0};
  std::shared_ptr<AskTable> asks;
  std::function<void(const MoveCheckResult&)> on_done;
  std::function<void(const Failure&)> on_failure;
};

struct MoveCheckState {
  std::string name = "move check";
  Asks asks;
  MoveCheckSetup setup;
  MoveCheckResult result;
  std::chrono::steady_clock::time_point started;
};

MoveCheckActor::behavior_type
move_check_actor(Self<MoveCheckActor, MoveCheckState> self,
                 MoveCheckSetup setup);

} // namespace troupe::actors
