// What begins on a sample as soon as it is made, while others are still being
// generated: `reward` calls, and own actors that read nothing else but rows of
// the data set. The call itself comes later, asks for all of its samples and
// finds those that are under way or done: only time depends on offers.
#pragma once

#include "actors/worker_context.hpp"

namespace troupe::actors {

/// The calls that can begin on one sample that `generates` has made.
std::vector<const plans::Call*> readers_of_one(const plans::Workflow& workflow,
                                               const plans::Call& generates);

/// Takes what a generate call writes of one sample, by its fn's names. Of any
/// thread.
using Offer = std::function<void(const net::Rows&)>;

/// Empty: nobody in this process begins before its call comes.
Offer offer_of(const std::shared_ptr<WorkerContext>& worker,
               const plans::Call& generates, StepId step);

} // namespace troupe::actors
