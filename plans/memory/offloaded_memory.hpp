// Memory of hosts that offloaded planes take: weights and moments that leave
// their device between calls are copied to a block of host memory, which stays
// allocated from the first time on, also while they are on the device
// (models/parallel/parameters). So each takes its bytes once.
#pragma once

#include "plans/memory/call_memory.hpp"
#include "plans/weights/replicas.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace troupe::plans {

/// Returns the bytes under `plan` by node, of nodes with such planes. A role
/// without a shape counts as nothing.
std::map<std::uint32_t, std::uint64_t> offloaded_bytes_by_node(
  const Workflow& workflow, const ExecutionPlan& plan, const Replicas& replicas,
  const std::map<std::string, ModelShape>& shapes,
  const std::map<std::string, DType>& dtypes, const BatchSizes& sizes);

} // namespace troupe::plans
