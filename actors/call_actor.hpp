// One call of the workflow: knows how the call splits over its mesh, makes the
// rows local on every device (`fetch`), then lets all devices `run` and joins
// their answers. A run never waits for the network.
// Parent: the session; it ends with the actor system, nothing is queued in it.
#pragma once

#include "actors/ask.hpp"
#include "config/strategy.hpp"
#include "plans/workflow.hpp"

namespace troupe::actors {

/// A device, or a host for functions, that takes part in a call.
struct Member {
  ShardActor shard;       ///< of calls with weights
  FunctionActor function; ///< of calls without
  WorkerId worker;
  std::string name; ///< "device 3", "worker 1"
};

struct CallSetup {
  plans::Call call;
  std::vector<Member> members; ///< mesh order; functions: one a worker
  /// Functions: by worker, the member's worker that takes what it holds.
  std::vector<WorkerId> homes;
  Strategy strategy;                   ///< of the mesh
  std::uint32_t samples_per_group = 1; ///< rollout.n
  std::uint32_t mini_batches = 1;
  std::uint32_t epochs = 1;
  std::shared_ptr<AskTable> asks;
};

struct CallState {
  std::string name;
  Asks asks;
  CallSetup setup;
};

CallActor::behavior_type call_actor(Self<CallActor, CallState> self,
                                    CallSetup setup);

} // namespace troupe::actors
