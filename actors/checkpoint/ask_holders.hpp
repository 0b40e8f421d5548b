// Orders to the workers that hold rows of calls in flight, for what copies,
// writes or keeps these rows.
#pragma once

#include "actors/checkpoint/checkpoint_actor.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::actors {

using CheckpointSelf = Self<CheckpointActor, CheckpointActorState>;

/// Sends orders to every worker that holds rows of calls in flight.
template <class Done, class Atom, class MakeOrder, class OnAll, class OnFailure>
void ask_holders(CheckpointSelf self, const SaveTask& task,
                 const Context& context, Atom atom, MakeOrder make_order,
                 const char* what, OnAll on_all, OnFailure on_failure) {
  std::vector<NodeActor> targets;
  std::vector<decltype(make_order(WorkerId{}, std::vector<RowSet>{}))> orders;
  std::vector<AskSpec> specs;
  for (const auto& [worker, sets] : rows_by_holder(task.in_flight)) {
    targets.push_back(self->state.setup.nodes.at(worker.value));
    orders.push_back(make_order(worker, sets));
    specs.push_back(
      {.name = std::string(what) + " rows on worker " + to_string(worker),
       .worker = worker});
  }
  ask_all<Done>(self, targets, atom, context, std::move(orders),
                std::move(specs), on_all, on_failure);
}

/// Makes these workers keep copies of the rows, to be written.
template <class OnAll, class OnFailure>
void copy_rows_in_flight(CheckpointSelf self, const SaveTask& task,
                         const Context& context, const char* what, OnAll on_all,
                         OnFailure on_failure) {
  ask_holders<CopyDone>(
    self, task, context, copy_atom::value,
    [](WorkerId, const std::vector<RowSet>& sets) {
      return CopyRowsOrder{sets};
    },
    what, on_all, on_failure);
}

} // namespace troupe::actors
