// The actor that leads the conversations of a call whose function is Python: it
// stands between the model and the processes in which the functions wait. Many
// conversations are in progress in each process; which one has a sample changes
// no result. Parent: UserActors.
#pragma once

#include "actors/worker_base/user_calls.hpp"
#include "net/child_programs/line_programs.hpp"

#include "troupe/detail/user_instance.hpp"

#include <string>

namespace troupe::actors {

struct LeaderSetup {
  const UserEntry* entry;
  std::string row; ///< label of its row in the trace
  detail::ModelActor model;
  net::LineProgramOptions process; ///< of each
};

SampleActor spawn_python_leader(caf::actor_system& system, LeaderSetup setup);

} // namespace troupe::actors
