// SearchSpace: which planes may leave a device between the calls of a role.
#include "plans/search/search_space.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

#include <algorithm>

namespace troupe::plans {
namespace {

/// Returns PPO of four models of 1.4B parameters on one H100, in fp32 as our
/// engine stores them: 55 GB, of which the moments of each trained role are 11.
PlanProblem tight_problem() {
  auto problem
    = make_problem(llama_shape(24, 2048, 5632, 16, 16), 1, 1, "h100x8");
  problem.sizes.engine = {.packs_weights = true};
  return problem;
}

bool may_keep_and_offload_moments(const SearchSpace::SpaceCall& call) {
  const auto has = [&](bool offloaded) {
    return std::ranges::any_of(call.options, [&](const CallOption& option) {
      return option.offload.offload_optimizer == offloaded;
    });
  };
  return has(true) && has(false);
}

TEST(SearchSpace, MomentsBelowAQuarterMayLeaveWhereAllRolesFillTheMemory) {
  const auto problem = tight_problem();
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  for (const auto& call : space.calls())
    EXPECT_EQ(call.trains, may_keep_and_offload_moments(call))
      << call.call->name;
}

TEST(SearchSpace, MomentsStayWhereMemoryDoesNotMatter) {
  auto problem = tight_problem();
  problem.hardware.mem_bytes *= 4;
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  for (const auto& call : space.calls())
    for (const auto& option : call.options)
      EXPECT_FALSE(option.offload.offload_optimizer) << call.call->name;
}

} // namespace
} // namespace troupe::plans
