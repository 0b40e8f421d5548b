// One call of the workflow: knows how the call splits over its mesh, makes the
// rows local on every device (`fetch`), then starts the `run` on all devices
// and joins their results, with one order and one reply per worker. A run never
// waits for the network. Parent: the session; it ends with the actor system,
// nothing is queued in it.
#pragma once

#include "actors/calls/local_mesh.hpp"
#include "actors/protocol/ask.hpp"
#include "config/base/strategy.hpp"
#include "plans/workflow/workflow.hpp"

namespace troupe::actors {

/// A worker that takes part in calls without weights.
struct Member {
  FunctionActor function;
  WorkerId worker;
};

struct CallSetup {
  plans::Call call;
  std::vector<LocalMesh> local_meshes; ///< calls with weights only
  std::vector<Member> members;         ///< functions only: one per worker
  /// Functions only: for each worker, the worker of the member that takes over
  /// the rows it holds.
  std::vector<WorkerId> homes;
  Strategy strategy;                   ///< strategy of the mesh
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
