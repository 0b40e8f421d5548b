#include "config/error.hpp"
#include "plans/presets.hpp"
#include "plans/search.hpp"
#include "plans/simulator.hpp"

#include "problem_support.hpp"
#include <gmock/gmock.h>

#include <atomic>

using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

double best_preset_s(const PlanProblem& problem, const CostModel& costs) {
  double best = 1e300;
  for (const auto& name : preset_names()) {
    try {
      const auto plan
        = preset(name, problem.workflow, problem.cluster,
                 {.shapes = problem.shapes,
                  .device_memory_bytes = problem.device_memory_bytes()});
      if (plan.lag.empty() && check_plan(problem, plan).ok())
        best = std::min(best, simulate_step_s(problem, costs, plan));
    } catch (const PlanError&) {
      continue;
    }
  }
  return best;
}

TEST(Search, BeatsEveryPresetAndPassesTheCheck) {
  const auto problem = make_problem(shape_7b(), 1, 8);
  const CostModel costs(problem);
  const auto found = search_plan(problem, costs, {});
  EXPECT_TRUE(check_plan(problem, found.best.plan).ok());
  EXPECT_LE(found.best.step_s, best_preset_s(problem, costs));
  EXPECT_DOUBLE_EQ(found.best.step_s,
                   simulate_step_s(problem, costs, found.best.plan));
  EXPECT_GT(found.lower_bound_s, 0);
  EXPECT_LE(found.lower_bound_s, found.best.step_s);
  EXPECT_TRUE(found.proved);
  EXPECT_EQ(found.next.size(), 3u);
  EXPECT_THAT(summary(found), HasSubstr("lower bound"));
}

TEST(Search, TheSameSeedGivesTheSamePlan) {
  const auto problem = make_problem(shape_7b(), 2, 8);
  const CostModel costs(problem);
  for (const auto method :
       {SearchMethod::automatic, SearchMethod::mcmc, SearchMethod::descent}) {
    const SearchOptions options{.method = method, .seed = 5, .iterations = 400};
    const auto one = search_plan(problem, costs, options);
    const auto two = search_plan(problem, costs, options);
    EXPECT_EQ(one.best.plan, two.best.plan) << to_string(method);
    EXPECT_EQ(one.evaluations, two.evaluations);
  }
}

TEST(Search, WalksNeverBeatTheProof) {
  const auto problem = make_problem(shape_7b(), 1, 4);
  const CostModel costs(problem);
  SearchOptions options;
  const auto exact = search_plan(problem, costs, options);
  ASSERT_TRUE(exact.proved);
  options.iterations = 3000;
  for (const auto method : {SearchMethod::mcmc, SearchMethod::descent}) {
    options.method = method;
    EXPECT_GE(search_plan(problem, costs, options).best.step_s,
              exact.best.step_s * (1 - 1e-9))
      << to_string(method);
  }
}

TEST(Search, ALagIsUsedOnlyWhereItIsAllowed) {
  const auto problem = make_problem(shape_7b(), 1, 8);
  const CostModel costs(problem);
  EXPECT_TRUE(
    search_plan(problem, costs, {.iterations = 200}).best.plan.lag.empty());
  const auto lagged = search_plan(
    problem, costs, {.iterations = 1500, .lag = {{"actor_gen", 1}}});
  EXPECT_EQ(lagged.method, "descent");
  EXPECT_FALSE(lagged.proved);
  EXPECT_LE(lagged.lower_bound_s, lagged.best.step_s);
}

TEST(Search, WhatThisVersionRunsIsAllThatARunGets) {
  auto problem = make_problem(shape_tiny(), 1, 4, "laptop");
  problem.for_run = true;
  const CostModel costs(problem);
  const auto found = search_plan(problem, costs, {});
  for (const auto& [name, placement] : found.best.plan.calls)
    EXPECT_EQ(why_not_run(problem.workflow.call(name).kind, placement.strategy),
              "")
      << name;
  EXPECT_LE(found.lower_bound_s, found.best.step_s);
}

TEST(Search, OtherWorkflowsAreSearchedToo) {
  for (const auto& workflow : {sft_workflow({}), reward_workflow({})}) {
    auto problem = make_problem(shape_7b(), 1, 8);
    problem.workflow = workflow;
    problem.shapes.clear();
    for (const auto& role : workflow.roles)
      problem.shapes[role.name] = shape_7b();
    const CostModel costs(problem);
    const auto found = search_plan(problem, costs, {});
    EXPECT_TRUE(check_plan(problem, found.best.plan).ok());
    EXPECT_TRUE(found.proved);
  }
}

TEST(Search, NothingFitsInOneLine) {
  auto problem = make_problem(shape_70b(), 1, 2);
  const CostModel costs(problem);
  try {
    search_plan(problem, costs, {});
    FAIL();
  } catch (const PlanError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no plan fits: the smallest peak is "));
    EXPECT_THAT(error.what(), HasSubstr("on device 0 in actor_train; try "));
    EXPECT_THAT(error.what(), HasSubstr(" 4 devices"));
  }
}

TEST(Search, AnInterruptedOneHasItsBestAndABound) {
  const auto problem = make_problem(shape_7b(), 1, 8);
  const CostModel costs(problem);
  const std::atomic<bool> stop = true;
  const auto found = search_plan(problem, costs, {.stop = &stop});
  EXPECT_TRUE(found.interrupted);
  EXPECT_FALSE(found.proved);
  EXPECT_GT(found.lower_bound_s, 0);
  EXPECT_TRUE(check_plan(problem, found.best.plan).ok());
}

TEST(Search, UnknownMethodsGetTheNearest) {
  try {
    parse_search_method("exat");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--method: expected auto, exact, mcmc "
                                        "or descent, got 'exat'; try 'exact'"));
  }
}

} // namespace
} // namespace troupe::plans
