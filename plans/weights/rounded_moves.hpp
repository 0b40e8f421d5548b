// Which weights may be sent in bf16 where both ends store fp32: those that the
// target's kernels read in bf16 only. bf16 that was widened rounds to itself,
// so that they read the same bits. A pure function of the plan: senders and
// receivers know it alike.
#pragma once

#include "config/model/parameter_shape.hpp"
#include "plans/weights/replicas.hpp"

#include <span>
#include <vector>

namespace troupe::plans {

/// Returns whether moves bring the replica weights that it only computes with:
/// it neither trains nor averages them. A checkpoint stores those of a replica
/// that lags, and a resumed run loads them to compute with them again.
bool is_only_computed_with(const Workflow& workflow, const Replica& target);

/// Returns, by parameter, whether a replica whose products read bf16 reads it
/// in bf16 only.
std::vector<bool> read_rounded(std::span<const ParameterShape> parameters);

} // namespace troupe::plans
