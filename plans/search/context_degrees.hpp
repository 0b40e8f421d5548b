// For how many ranks a search cuts the tokens of samples (context parallelism).
// Cutting them multiplies the options of a call, so it is tried only where
// whole sequences leave ranks without any, or hardly fit.
#pragma once

#include "plans/cost/plan_problem.hpp"

#include <cstdint>
#include <set>

namespace troupe::plans {

/// Returns the samples of a pass of a call, or of an optimizer step.
std::uint32_t samples_of(const PlanProblem& problem, const Call& call);

/// Returns the degrees of context parallelism to try for a call that is placed
/// with whole sequences, on devices of which it may use `memory_bytes`: more
/// than 1 only where dp ranks have no sample each, or one sequence fills half
/// of a device. Elsewhere whole ones take the same time, without gathers.
std::set<std::uint32_t> context_degrees(const PlanProblem& problem,
                                        const Call& call, Placement whole,
                                        std::uint64_t memory_bytes);

} // namespace troupe::plans
