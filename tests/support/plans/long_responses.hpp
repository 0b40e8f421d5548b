// A problem whose responses have a long tail: what slices of a generation are
// for.
#pragma once

#include "tests/support/plans/problem_support.hpp"

namespace troupe::plans {

/// Returns GRPO of 1.3B models on 4 devices: 64 responses a step of up to 4,096
/// tokens, of 800 on average.
inline PlanProblem long_responses() {
  const auto shape = llama_shape(24, 2048, 5632, 16, 8);
  auto problem = make_problem(shape, 1, 4, "h100x8");
  problem.workflow = make_grpo();
  problem.hardware.mem_bytes = 0;
  problem.sizes.samples_per_step = 64;
  problem.sizes.group_size = 8;
  problem.sizes.mini_batches = 1;
  problem.sizes.max_new_tokens = 4096;
  problem.sizes.max_sequence_tokens = 128 + 4096;
  for (auto& [role, one] : problem.shapes)
    one.max_positions = 8192;
  problem.lengths = Lengths(128, 800, 4096);
  return problem;
}

} // namespace troupe::plans
