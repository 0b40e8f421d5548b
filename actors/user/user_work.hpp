// Carries out functions of a user-defined program on the host thread, and
// converts rows to the samples that user-defined functions and actors see, and
// back.
#pragma once

#include "actors/worker_base/user_calls.hpp"
#include "actors/worker_base/worker_context.hpp"
#include "models/rl/metric_sums.hpp"

namespace troupe::actors {

/// Returns the name that failures of the call's samples carry.
std::string who_of(const WorkerContext& worker, const UserEntry& user,
                   StepId step);
/// Returns the samples of a call, by ascending id.
std::vector<Sample> user_samples(WorkerContext& worker, StepId step,
                                 const UserEntry& user, const net::Rows& rows);
/// Runs the call's function on its samples, its groups or the batch.
void run_user_function(const WorkerContext& worker, const UserEntry& user,
                       std::vector<Sample>& samples,
                       detail::CarriedValues& carried);
/// Calls `work` for each sample, for each group, or once for all, depending on
/// the kind of function; samples of one group are adjacent.
void for_each_unit(detail::UserKind kind, std::span<Sample> samples,
                   const std::function<void(std::span<Sample>)>& work);
/// Returns the means of the entry's metrics.
models::MetricSums user_metric_sums(const UserEntry& user,
                                    const net::Rows& rows);
/// Stores what the samples now hold of the entry's writes in the stash, under
/// the keys of `call`.
RunDone keep_user_outputs(WorkerContext& worker, StepId step,
                          const plans::Call& call, const UserEntry& user,
                          const std::vector<Sample>& samples);

} // namespace troupe::actors
