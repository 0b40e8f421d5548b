// Names of a run's checkpoint folders. Only a folder with exactly such a name
// is a checkpoint of the run: a user's copy of one ("step_000020_best") is
// neither continued from nor removed.
#pragma once

#include "config/base/ids.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Returns "step_000020" for the state after 20 committed steps.
std::string checkpoint_name(StepId next_step);
/// Returns 20 for "step_000020"; nullopt for a name that `checkpoint_name` does
/// not make.
std::optional<StepId> step_of_checkpoint(std::string_view name);

} // namespace troupe
