// What can happen to a session: its one queue takes these from any thread.
#pragma once

#include "actors/lobby_actor.hpp"
#include "actors/step_report.hpp"
#include "net/child_pool.hpp"

#include <string>
#include <variant>
#include <vector>

namespace troupe::runtime {

struct AllJoined {
  std::vector<actors::Joined> workers;
};
struct AllLoaded {
  std::vector<actors::SetupDone> ready;
};
struct StartFailed {
  Failure failure;
};
struct WorkerLost { ///< its connection closed
  WorkerId worker;
  Failure failure;
};
struct WorkerExited { ///< a child of ours ended
  WorkerId worker;
  net::ChildExit exit;
};
struct StopAsked {
  int signal;
};
struct StepCommitted {
  actors::StepReport report;
};
struct Evaluated {
  actors::StepReport report;
};
struct Stalled {
  std::string text;
};
struct WorkerHeard { ///< or not: then it is suspect
  WorkerId worker;
  bool suspect;
};
using SessionEvent
  = std::variant<AllJoined, AllLoaded, StartFailed, WorkerLost, WorkerExited,
                 StopAsked, StepCommitted, Evaluated, Stalled, WorkerHeard,
                 actors::RunEnd>;

} // namespace troupe::runtime
