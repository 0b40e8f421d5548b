// Searches that cut the tokens of samples: only where whole ones leave devices
// without any, or hardly fit.
#include "plans/search/context_degrees.hpp"
#include "plans/search/search.hpp"
#include "plans/search/search_space.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace troupe::plans {
namespace {

/// PPO of 1.4B with sequences of `tokens` tokens on 8 GPUs.
PlanProblem long_answers(std::uint32_t samples, std::int64_t tokens) {
  auto problem
    = make_problem(llama_shape(24, 2048, 5632, 16, 16), 1, 8, "h100x8");
  problem.sizes.samples_per_step = samples;
  problem.sizes.mini_batches = 1;
  problem.sizes.max_sequence_tokens = tokens;
  problem.sizes.max_new_tokens = 256;
  problem.lengths = Lengths(double(tokens) - 256, 256, 256);
  return problem;
}

std::set<std::uint32_t> cut_degrees(const PlanProblem& problem,
                                    const char* call, const char* strategy) {
  const auto parsed = parse_strategy(strategy);
  return context_degrees(
    problem, problem.workflow.call(call),
    {.devices = ranks(0, parsed.num_devices() - 1), .strategy = parsed},
    problem.device_memory_bytes());
}

TEST(ContextSearch, CutsNothingWhereRanksHaveSamplesThatFit) {
  const auto problem = long_answers(64, 4096);
  for (const auto* call : {"actor_gen", "ref_inf", "actor_train"})
    EXPECT_EQ(cut_degrees(problem, call, "d8"), (std::set{1U})) << call;
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  for (const auto& call : space.calls())
    for (const auto& option : call.options)
      EXPECT_EQ(option.strategy.cp, 1U) << to_string(option.strategy);
}

TEST(ContextSearch, CutsSequencesForRanksWithoutOne) {
  const auto problem = long_answers(2, 4096);
  EXPECT_EQ(cut_degrees(problem, "ref_inf", "d8"), (std::set{1U, 2U, 4U, 8U}));
  EXPECT_EQ(cut_degrees(problem, "ref_inf", "d2t4"), (std::set{1U}));
  EXPECT_EQ(cut_degrees(problem, "actor_gen", "d8"), (std::set{1U}));
  EXPECT_EQ(cut_degrees(long_answers(2, 1000), "ref_inf", "d8"),
            (std::set{1U, 2U}))
    << "ten tiles";
}

TEST(ContextSearch, CutsSequencesThatFillHalfOfADevice) {
  const auto problem = long_answers(64, 1 << 18);
  EXPECT_EQ(cut_degrees(problem, "actor_train", "d8"),
            (std::set{1U, 2U, 4U, 8U}));
  EXPECT_EQ(cut_degrees(problem, "actor_gen", "d8"), (std::set{1U}));
}

TEST(ContextSearch, NeverCutsThoseOfABalanceLoss) {
  auto problem = long_answers(2, 4096);
  problem.rules.balanced_roles = {"actor"};
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  std::set<std::string> cut;
  for (const auto& call : space.calls())
    for (const auto& option : call.options)
      if (option.strategy.cp > 1)
        cut.insert(call.call->name);
  EXPECT_TRUE(cut.contains("critic_train"));
  EXPECT_FALSE(cut.contains("actor_train"));
  EXPECT_FALSE(cut.contains("actor_gen"));
}

TEST(ContextSearch, FindsPlansThatTheChecksTake) {
  const auto problem = long_answers(4, 1 << 16);
  const auto plan
    = search_plan(problem, CostModel(problem), {.seconds = 2}).best.plan;
  EXPECT_TRUE(check_plan(problem, plan).ok()) << print(plan);
  EXPECT_TRUE(std::ranges::any_of(
    plan.calls, [](const auto& call) { return call.second.strategy.cp > 1; }))
    << print(plan);
}

} // namespace
} // namespace troupe::plans
