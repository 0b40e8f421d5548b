// The self-test of moves: sends random weights back and forth between two
// layouts for a few seconds, over the workers of a real run. Every move
// compares checksums (MoveSetup::check), so a normal end proves that the bytes
// arrived.
// Parent: the session; it is idle once it has reported.
#pragma once

#include "actors/calls/move_check_result.hpp"
#include "actors/protocol/ask.hpp"

#include <array>
#include <functional>

namespace troupe::actors {

using MoveCheckActor = caf::typed_actor<caf::reacts_to<start_atom>, ask_failed>;

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
