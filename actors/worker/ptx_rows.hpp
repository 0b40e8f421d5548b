// The rows of data.ptx that one shard trains on beside its samples. Every shard
// computes them from step and place alone: no message carries them.
#pragma once

#include "actors/protocol/messages.hpp"
#include "models/engine/train_rows.hpp"
#include "plans/workflow/workflow.hpp"

#include <optional>

namespace troupe::actors {

struct Shard;

/// Returns the rows of the call's optimizer steps on this dp rank (or cp
/// group), each step's balanced over them; nullopt for a call that has none.
std::optional<models::TrainRows> ptx_rows_of(Shard& shard, StepId step,
                                             const plans::Call& call,
                                             const RunOrder& order);

} // namespace troupe::actors
