#include "plans/cost/realhf_flops.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

namespace troupe::plans {
namespace {

// The published table's own column: PFLOP of a step of 512 and 128 samples.
TEST(RealhfFlops, EqualThePublishedColumn) {
  auto problem = make_problem(shape_7b(), 1, 8);
  EXPECT_NEAR(realhf_flops(problem) / 1e15, 21.401, 0.0006);
  problem.sizes.samples_per_step = 128;
  problem.lengths = Lengths(128, 896, 896);
  EXPECT_NEAR(realhf_flops(problem) / 1e15, 22.006, 0.0006);
  problem.shapes["actor"] = problem.shapes["ref"] = shape_34b();
  EXPECT_NEAR(realhf_flops(problem) / 1e15, 74.123, 0.0006);
}

} // namespace
} // namespace troupe::plans
