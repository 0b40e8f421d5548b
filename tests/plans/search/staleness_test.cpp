#include "plans/search/refined_plans.hpp"
#include "plans/search/staleness.hpp"
#include "plans/simulate/simulator.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/long_responses.hpp"
#include "tests/support/plans/problem_support.hpp"

#include <algorithm>
#include <atomic>

namespace troupe::plans {
namespace {

using Steps = std::vector<std::uint32_t>;
using Lags = std::map<std::string, std::uint32_t>;

/// A search that is the same everywhere, and short.
constexpr std::uint64_t few_simulations = 1500;

struct Searched {
  PlanProblem problem = make_problem(shape_7b(), 1, 8);
  CostModel costs{problem};
  SearchOptions options{.iterations = few_simulations};

  StalenessSearch within(std::uint32_t max_lag) const {
    return find_plan_within(problem, costs, options, max_lag);
  }
  SearchResult fixed(std::uint32_t lag) const {
    auto with_lag = options;
    with_lag.lag = lag_of_generation(problem.workflow, lag);
    return find_plan(problem, costs, with_lag);
  }
};

Steps steps_of(const StalenessSearch& found) {
  Steps steps;
  for (const auto& staleness : found.tried)
    steps.push_back(staleness.steps);
  return steps;
}

TEST(Staleness, PowersOfTwoAndTheLimitAreTried) {
  EXPECT_EQ(staleness_up_to(0), Steps({0}));
  EXPECT_EQ(staleness_up_to(1), Steps({0, 1}));
  EXPECT_EQ(staleness_up_to(3), Steps({0, 1, 2, 3}));
  EXPECT_EQ(staleness_up_to(4), Steps({0, 1, 2, 4}));
  EXPECT_EQ(staleness_up_to(8), Steps({0, 1, 2, 4, 8}));
}

TEST(Staleness, OnlyGenerationWithTrainedWeightsLags) {
  EXPECT_EQ(lag_of_generation(make_ppo(), 2), Lags({{"actor_gen", 2}}));
  EXPECT_TRUE(lag_of_generation(make_ppo(), 0).empty());
  EXPECT_TRUE(lag_of_generation(sft_workflow({}), 2).empty());
  auto renamed = make_ppo();
  for (auto& call : renamed.calls)
    if (call.kind == CallKind::generate)
      call.name = "answers";
  EXPECT_EQ(lag_of_generation(renamed, 1), Lags({{"answers", 1}}));
}

TEST(Staleness, NoneIsSlowerThanItsLagAloneOrThanASmallerOne) {
  const Searched searched;
  const auto found = searched.within(4);
  ASSERT_EQ(steps_of(found), Steps({0, 1, 2, 4}));
  EXPECT_EQ(found.tried[0].best->plan, searched.fixed(0).best.plan);
  for (std::size_t i = 1; i < found.tried.size(); ++i) {
    const auto& staleness = found.tried[i];
    ASSERT_TRUE(staleness.best);
    EXPECT_LE(staleness.best->step_s,
              searched.fixed(staleness.steps).best.step_s);
    EXPECT_LE(staleness.best->step_s,
              found.tried[i - 1].best->step_s * (1 + 1e-9));
    EXPECT_LE(staleness.lower_bound_s, staleness.best->step_s);
  }
}

TEST(Staleness, EveryPlanLagsAsItSaysAndTakesTheSecondsItSays) {
  const Searched searched;
  const auto costs = searched.costs.with_planned_moves();
  for (const auto& staleness : searched.within(2).tried) {
    const auto& plan = staleness.best->plan;
    EXPECT_EQ(plan.most_lag_of("actor_gen"), staleness.steps);
    EXPECT_TRUE(check_plan(searched.problem, plan).ok());
    EXPECT_EQ(staleness.best->step_s,
              simulate_step_s(searched.problem, costs, plan));
  }
}

TEST(Staleness, TheFastestIsChosenAndOfEqualOnesTheFreshest) {
  const Searched searched;
  const auto found = searched.within(4);
  const auto& chosen = found.chosen.best;
  const auto at
    = std::ranges::find_if(found.tried, [&](const Staleness& staleness) {
        return staleness.best->plan == chosen.plan;
      });
  ASSERT_NE(at, found.tried.end());
  EXPECT_EQ(at->best->plan, chosen.plan);
  EXPECT_GT(at->steps, 0u) << "generation beside training is faster here";
  for (const auto& staleness : found.tried)
    EXPECT_LE(chosen.step_s * (1 - least_staleness_gain),
              staleness.best->step_s);
  for (auto fresher = found.tried.begin(); fresher != at; ++fresher)
    EXPECT_LT(chosen.step_s,
              fresher->best->step_s * (1 - least_staleness_gain));
  EXPECT_FALSE(found.chosen.proved);
  EXPECT_EQ(found.options.lag.at("actor_gen"),
            chosen.plan.most_lag_of("actor_gen"));
}

TEST(Staleness, WithoutALimitTheSearchIsTheSynchronousOne) {
  const Searched searched;
  const auto found = searched.within(0);
  const auto alone = searched.fixed(0);
  EXPECT_EQ(steps_of(found), Steps({0}));
  EXPECT_EQ(found.chosen.best.plan, alone.best.plan);
  EXPECT_EQ(found.chosen.best.step_s, alone.best.step_s);
  EXPECT_EQ(found.chosen.proved, alone.proved);
  EXPECT_EQ(found.chosen.evaluations, alone.evaluations);
}

TEST(Staleness, ALagThatIsGivenIsTheOnlyOne) {
  Searched searched;
  searched.options.lag = {{"actor_gen", 2}};
  const auto found = searched.within(4);
  EXPECT_TRUE(found.tried.empty());
  EXPECT_EQ(found.chosen.best.plan, searched.fixed(2).best.plan);
}

// A long tail of responses: few are left in later slices.
TEST(Staleness, SlicesAreChosenWhereTheyAreFaster) {
  const auto problem = long_responses();
  const CostModel costs(problem);
  const SearchOptions options{.iterations = few_simulations};
  const auto found = find_plan_within(problem, costs, options, 4);
  const auto& chosen = found.chosen.best;
  EXPECT_GT(chosen.plan.slices_of("actor_gen"), 1U);
  EXPECT_LE(chosen.plan.most_lag_of("actor_gen"), 4U);
  auto whole = options;
  for (const std::uint32_t steps : {0U, 1U, 2U, 4U}) {
    whole.lag = lag_of_generation(problem.workflow, steps);
    EXPECT_LT(chosen.step_s, find_plan(problem, costs, whole).best.step_s);
  }
}

TEST(Staleness, TheSameSeedGivesTheSamePlans) {
  const Searched searched;
  const auto one = searched.within(2), two = searched.within(2);
  ASSERT_EQ(one.tried.size(), two.tried.size());
  for (std::size_t i = 0; i < one.tried.size(); ++i)
    EXPECT_EQ(one.tried[i].best->plan, two.tried[i].best->plan);
  EXPECT_EQ(one.chosen.best.plan, two.chosen.best.plan);
}

TEST(Staleness, BranchAndBoundIsForStepsWithoutLag) {
  Searched searched;
  searched.options.method = SearchMethod::exact;
  const auto found = searched.within(1);
  EXPECT_EQ(steps_of(found), Steps({0, 1}));
  EXPECT_TRUE(found.tried[1].best);
}

TEST(Staleness, AStoppedSearchReportsWhatItHas) {
  Searched searched;
  const std::atomic<bool> stop = true;
  searched.options.stop = &stop;
  const auto found = searched.within(4);
  EXPECT_EQ(steps_of(found), Steps({0}));
  EXPECT_EQ(found.chosen.end, SearchEnd::interrupted);
}

} // namespace
} // namespace troupe::plans
