// Plans as points of a search space: the choice of a plan for a call is an
// option, all of its choices together are a point.
#pragma once

#include "plans/search/search_space.hpp"

#include <optional>

namespace troupe::plans::internal {

/// Returns the placement of a call in `plan` as an option without times and
/// bytes; nullopt unless its mesh is a run of devices.
std::optional<CallOption> option_of(const SearchSpace& space,
                                    const SearchSpace::SpaceCall& call,
                                    const ExecutionPlan& plan);

/// Returns the point of a plan, with the most responses decoded at once that
/// options have; nullopt if the space lacks one of its choices.
std::optional<SpacePoint> point_of(const SearchSpace& space,
                                   const ExecutionPlan& plan);

} // namespace troupe::plans::internal
