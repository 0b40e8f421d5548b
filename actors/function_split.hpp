// Which worker runs a function on which samples: batch functions where most
// rows are, functions of samples and groups where each unit's rows are. Pure.
#pragma once

#include "actors/messages.hpp"
#include "plans/balance.hpp"
#include "plans/workflow.hpp"

#include <span>
#include <utility>
#include <vector>

namespace troupe::actors {

struct FunctionShare {
  std::size_t member = 0; ///< index into the workers
  std::vector<SampleId> samples;
};

/// Shares of the samples of `range`, which holds groups whole, by rising
/// member, none empty; `workers` are the
/// numbers of the members. Of equals the lowest number is taken, so the answer
/// is always the same.
std::vector<FunctionShare> split_function(plans::Scope scope,
                                          std::span<const RowSource> sources,
                                          std::span<const WorkerId> workers,
                                          plans::SampleRange range,
                                          std::uint32_t samples_per_group);

} // namespace troupe::actors
