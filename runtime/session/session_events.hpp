// Events of an attempt at a run: its one queue takes these from any thread.
#pragma once

#include "actors/master/step_report.hpp"
#include "actors/membership/join_actor.hpp"
#include "net/child_programs/child_pool.hpp"

#include <string>
#include <variant>
#include <vector>

namespace troupe::runtime {

struct WorkerJoined {
  WorkerId worker;
};
struct AllJoined {
  std::vector<actors::Joined> workers;
};
struct AllLoaded {
  std::vector<actors::SetupDone> ready;
};
struct StartFailed {
  Failure failure;
};
struct WorkerLost { ///< its connection was closed
  WorkerId worker;
  Failure failure;
};
struct WorkerExited { ///< a child process ended
  WorkerId worker;
  net::ChildExit exit;
};
struct HostsAnswered {}; ///< the lost hosts can be reached again
struct StepCommitted {
  actors::StepReport report;
};
struct Evaluated {
  actors::StepReport report;
};
struct Stalled {
  std::string text;
};
struct WorkerHeard { ///< it fell silent (suspect) or replies again
  WorkerId worker;
  bool suspect;
};
using SessionEvent
  = std::variant<WorkerJoined, HostsAnswered, AllJoined, AllLoaded, StartFailed,
                 WorkerLost, WorkerExited, StepCommitted, Evaluated, Stalled,
                 WorkerHeard, actors::RunEnd>;

} // namespace troupe::runtime
