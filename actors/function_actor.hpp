// Runs calls without weights (advantages, rules, recording samples) on the host
// thread of the worker that has most of their rows.
// Parent: the node actor; queued work is dropped when the node aborts.
#pragma once

#include "actors/row_gather.hpp"

namespace troupe::actors {

struct FunctionState {
  FunctionState() = default;
  FunctionState(const FunctionState&) = delete;
  FunctionState& operator=(const FunctionState&) = delete;
  ~FunctionState() { // own actors end with this one
    if (worker)
      worker->own->end();
  }

  std::string name;
  std::shared_ptr<WorkerContext> worker;
  RowInbox inbox;
  OpenAnswers open;
};

FunctionActor::behavior_type
function_actor(Self<FunctionActor, FunctionState> self,
               std::shared_ptr<WorkerContext> worker);

} // namespace troupe::actors
