// Assigns the samples of a function to workers: a batch function runs where
// most rows are, functions of samples and groups run where each unit's rows
// are. Pure.
#pragma once

#include "actors/protocol/messages.hpp"
#include "plans/workflow/balance.hpp"
#include "plans/workflow/workflow.hpp"

#include <span>
#include <utility>
#include <vector>

namespace troupe::actors {

struct FunctionShare {
  std::size_t member = 0; ///< index into the workers
  std::vector<SampleId> samples;
};

/// Returns the shares of the samples of `range`, which holds whole groups, by
/// ascending member, none empty; `workers` are the numbers of the members. Ties
/// go to the lowest number, so the result is deterministic.
std::vector<FunctionShare> split_function(plans::Scope scope,
                                          std::span<const RowSource> sources,
                                          std::span<const WorkerId> workers,
                                          plans::SampleRange range,
                                          std::uint32_t samples_per_group);

} // namespace troupe::actors
