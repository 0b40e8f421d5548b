// Carries out functions of an own program on the host thread, and turns rows to
// the samples that own functions and actors see, and back.
#pragma once

#include "actors/own_calls.hpp"
#include "actors/worker_context.hpp"
#include "models/sums.hpp"

namespace troupe::actors {

/// Whose failure it is if one of its samples fails.
std::string who_of(const WorkerContext& worker, const OwnEntry& own,
                   StepId step);
/// The samples of a call, by rising id.
std::vector<Sample> own_samples(WorkerContext& worker, StepId step,
                                const OwnEntry& own, const net::Rows& rows);
/// Samples, groups or the batch through the call's function.
void run_own_function(const WorkerContext& worker, const OwnEntry& own,
                      std::vector<Sample>& samples,
                      detail::CarriedValues& carried);
/// Calls `work` for each sample, group, or for all, as the kind of a function
/// says; samples of one group stand together.
void for_each_unit(detail::OwnKind kind, std::span<Sample> samples,
                   const std::function<void(std::span<Sample>)>& work);
/// Means of the entry's metrics.
models::Sums own_metric_sums(const OwnEntry& own, const net::Rows& rows);
/// What the samples now hold of the entry's writes, into the stash under the
/// keys of `call`.
RunDone keep_own_outputs(WorkerContext& worker, StepId step,
                         const plans::Call& call, const OwnEntry& own,
                         const std::vector<Sample>& samples);

} // namespace troupe::actors
