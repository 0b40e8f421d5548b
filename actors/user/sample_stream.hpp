// Work that begins on a sample as soon as it is made, while others are still
// being generated: `reward` calls, and user-defined actors that read nothing
// else but rows of the data set. The call itself comes later, requests all of
// its samples and finds those that are in progress or done: offers change only
// timing.
#pragma once

#include "actors/worker_base/worker_context.hpp"

namespace troupe::actors {

/// Returns the calls that can begin on a single sample that `generates` has
/// made.
std::vector<const plans::Call*> readers_of_one(const plans::Workflow& workflow,
                                               const plans::Call& generates);

/// Takes what a generate call writes of one sample, by the key names of its fn.
/// Callable from any thread.
using SampleStream = std::function<void(const net::Rows&)>;

/// Returns the stream of a generate call; empty: no call in this process begins
/// early.
SampleStream stream_of(const std::shared_ptr<WorkerContext>& worker,
                       const plans::Call& generates, StepId step);

} // namespace troupe::actors
