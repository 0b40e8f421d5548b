// Metric sums on the wire: what a training call or a function accumulates, as
// parts of its reply.
#pragma once

#include "actors/protocol/messages.hpp"
#include "models/rl/metric_sums.hpp"

#include <vector>

namespace troupe::actors {

std::vector<SumPart> to_parts(const models::MetricSums& sums);
models::MetricSums to_metric_sums(const std::vector<SumPart>& parts);

} // namespace troupe::actors
