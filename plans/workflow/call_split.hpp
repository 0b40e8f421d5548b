// How the samples of a call are split over the dp coordinates of its mesh.
// Mini-batches are equal contiguous ranges of sample ids, groups whole; each is
// then balanced by tokens over dp. Pure arithmetic: every process computes the
// same result.
#pragma once

#include "config/base/ids.hpp"
#include "plans/workflow/balance.hpp"
#include "plans/workflow/workflow.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// One dp coordinate's part of a call: mini-batches in order (calls other than
/// train have one), sample ids ascending in each. A batch may be empty.
using Share = std::vector<std::vector<SampleId>>;

/// Returns the samples of chunk `chunk` of `chunks`: groups stay whole, and a
/// chunk that covers [i/k, (i+1)/k) of a step has only samples of those chunks
/// of another count that the step graph makes it wait for.
SampleRange chunk_range(std::uint32_t num_samples, std::uint32_t group_size,
                        std::uint32_t chunk, std::uint32_t chunks);

/// Splits the samples of `range` over `dp` coordinates.
/// \param tokens       length of each sample of the step
/// \param group_size   samples of one prompt; a group is never cut by
///                     mini-batches, and stays together in generation
/// \param mini_batches optimizer steps of a train call
std::vector<Share> split_call(const Call& call, std::uint32_t dp,
                              std::span<const std::uint32_t> tokens,
                              SampleRange range, std::uint32_t group_size,
                              std::uint32_t mini_batches);

} // namespace troupe::plans
