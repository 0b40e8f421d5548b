// How many micro-batches a call cuts its samples into: one rule for memory and
// time. Explicit counts win; then a budget of tokens; a pipeline has at least
// as many as keep its stages busy: twice its stages
// (models/parallel/pipeline.hpp), for generation its number of stages.
#pragma once

#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

#include <cstdint>

namespace troupe::plans {

struct BatchSizes;

struct MicroBatches {
  std::uint32_t count = 1; ///< per pass, or per mini-batch
  double samples = 1;      ///< of one dp rank (or cp group) in one of them
};

/// Returns the micro-batches of a call. `sequence_tokens`: per sample, the mean
/// for times, the maximum for memory.
MicroBatches micro_batches_of(CallKind kind, const Placement& placement,
                              const BatchSizes& sizes, double sequence_tokens);

} // namespace troupe::plans
