// Runs calls without weights (advantages, rules, recording samples) on the host
// thread of the worker that has most of their rows.
// Parent: the node actor; queued work is dropped when the node aborts.
#pragma once

#include "actors/user/user_actors.hpp"
#include "actors/worker_base/row_gather.hpp"

namespace troupe::actors {

struct FunctionState {
  FunctionState() = default;
  FunctionState(const FunctionState&) = delete;
  FunctionState& operator=(const FunctionState&) = delete;
  ~FunctionState() { // user-defined actors end with this one
    if (worker)
      worker->user->end();
  }

  std::string name;
  std::shared_ptr<WorkerContext> worker;
  RowInbox inbox;
  OpenReplies open;
};

FunctionActor::behavior_type
function_actor(Self<FunctionActor, FunctionState> self,
               std::shared_ptr<WorkerContext> worker);

} // namespace troupe::actors
