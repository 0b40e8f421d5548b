// The shortest workflow that trains: one role generates and learns from it.
#pragma once

#include "plans/workflow/workflow.hpp"

namespace troupe::actors {

inline plans::Workflow generate_and_train() {
  plans::Workflow workflow{.name = "short", .dataset_keys = {"prompt_ids"}};
  workflow.roles = {{.name = "actor", .trained = true}};
  workflow.calls = {{.name = "actor_gen",
                     .kind = plans::CallKind::generate,
                     .role = "actor",
                     .reads = {"prompt_ids"},
                     .writes = {"sequence_ids"}},
                    {.name = "actor_train",
                     .kind = plans::CallKind::train,
                     .role = "actor",
                     .reads = {"sequence_ids"}}};
  return workflow;
}

} // namespace troupe::actors
