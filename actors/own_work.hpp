// Carries out calls of an own program: plain functions on the host thread, own
// actors with all of the call's samples in flight.
#pragma once

#include "actors/own_calls.hpp"
#include "actors/worker_context.hpp"
#include "models/sums.hpp"

#include "troupe/actor.hpp"

namespace troupe::actors {

/// The samples of a call; on the host thread.
std::vector<Sample> own_samples(WorkerContext& worker, const OwnEntry& own,
                                const net::Rows& rows);
/// Samples, groups or the batch through the call's function.
void run_own_function(const WorkerContext& worker, const OwnEntry& own,
                      std::vector<Sample>& samples);
/// Calls `work` for each sample, group, or for all, as the kind of a function
/// says; samples of one group stand together.
void for_each_unit(detail::OwnKind kind, std::span<Sample> samples,
                   const detail::SampleFunction& work);
/// Means of the entry's metrics.
models::Sums own_metric_sums(const OwnEntry& own, const net::Rows& rows);
/// What the samples now hold of the call's writes, into the stash.
RunDone keep_own_outputs(WorkerContext& worker, StepId step,
                         const OwnEntry& own,
                         const std::vector<Sample>& samples);

/// Sends each sample to `target`; `done` gets them, in their order, or the
/// first failure of `who`. Callable from any thread; so is `done` called.
void ask_own_actor(
  caf::actor_system& system, SampleActor target, const std::string& who,
  std::vector<Sample> samples,
  std::function<void(std::variant<std::vector<Sample>, Failure>)> done);

/// An instance with the section of settings that it takes.
SampleActor spawn_own_actor(caf::actor_system& system, const OwnEntry& own,
                            const Settings& settings);

} // namespace troupe::actors
