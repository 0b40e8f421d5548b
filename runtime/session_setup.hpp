// What a run's workers are told before its first step: who they are and what
// the run is when they join, whom they work with and what they load once all
// have joined.
#pragma once

#include "actors/lobby_actor.hpp"
#include "actors/setup_actor.hpp"
#include "runtime/run_secret.hpp"
#include "runtime/session_actors.hpp"

#include <vector>

namespace troupe::runtime {

/// For each worker that joins; the caller adds who is told when all have.
actors::LobbySetup make_lobby(const RunBasis& basis, const RunSecret& secret);

/// For all of them; the caller adds who is told of the end.
actors::SetupSetup make_setup(const RunBasis& basis,
                              const std::vector<actors::Joined>& workers);

} // namespace troupe::runtime
