#include "actors/calls/move_check_actor.hpp"

namespace troupe::actors {

namespace {

using MoveCheckSelf = Self<MoveCheckActor, MoveCheckState>;

/// Moves there, back, there, ... until the time is over and both directions
/// were used.
void next_move(MoveCheckSelf self) {
  auto& state = self->state;
  state.result.took = std::chrono::steady_clock::now() - state.started;
  if (state.result.moves >= 2 && state.result.took >= state.setup.at_least)
    return state.setup.on_done(state.result);
  ask<MoveDone>(
    self, state.setup.moves[state.result.moves % 2], run_atom::value,
    Context{
      .flow = 0, .step = StepId{}, .incarnation = state.setup.incarnation},
    MoveTask{state.result.moves, Version{0}},
    {.name = "move of the self-test", .deadline = std::chrono::seconds{30}},
    [=](const MoveDone& done) {
      ++self->state.result.moves;
      self->state.result.bytes += done.bytes;
      self->state.result.wire_bytes += done.wire_bytes;
      next_move(self);
    },
    [=](const Failure& failure) { self->state.setup.on_failure(failure); });
}

} // namespace

MoveCheckActor::behavior_type move_check_actor(MoveCheckSelf self,
                                               MoveCheckSetup setup) {
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  return {
    [=](start_atom) {
      self->state.started = std::chrono::steady_clock::now();
      next_move(self);
    },
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

} // namespace troupe::actors
