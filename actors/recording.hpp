// Every run that trains on what it generates keeps its samples: a host
// function, added to the users' workflow, reads the finished rows of a step and
// appends them to samples.jsonl from the worker that holds them. So rows never
// pass through the master, and `run.replay` has what it needs.
#pragma once

#include "plans/workflow.hpp"

#include <string_view>

namespace troupe::actors {

inline constexpr std::string_view record_fn = "record_samples";
/// Where the verbs' sessions leave their rows, in the run folder.
inline constexpr const char* verb_rows_file = "rows.jsonl";

/// The workflow plus its recording call; unchanged where nothing is generated
/// to train on.
plans::Workflow with_recording(plans::Workflow workflow);

} // namespace troupe::actors
