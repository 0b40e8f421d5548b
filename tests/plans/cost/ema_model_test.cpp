// Roles that are the EMA of a trained one: refused settings and workflows, the
// updates in the step graph, their versions, and how they are planned.
#include "config/base/error.hpp"
#include "plans/cost/cost_model.hpp"
#include "plans/search/local_search.hpp"
#include "plans/search/search.hpp"
#include "plans/simulate/simulator.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

namespace troupe::plans {
namespace {

Workflow following_ppo(std::uint32_t every = 1) {
  auto ppo = make_ppo([](Settings& s) { s.models["ref"].ema_decay = 0.99; });
  ppo.roles.back().ema->every = every;
  return ppo;
}

StepGraph ema_graph(const Workflow& workflow, const ExecutionPlan& plan) {
  return make_step_graph(workflow, plan, replicas_of(workflow, plan));
}

std::vector<std::string> ema_needs(const StepGraph& graph,
                                   const std::string& name) {
  std::vector<std::string> texts;
  for (const auto& need : graph.tasks[graph.index_of(name)].needs)
    texts.push_back(graph.tasks[need.task].name + " "
                    + std::to_string(need.steps_back) + " "
                    + std::string(to_string(need.edge)));
  return texts;
}

TEST(EmaModel, ADecayMakesTheReferenceAnEmaOfTheActor) {
  Settings settings;
  for (const char* name : {"ppo", "grpo", "dpo"}) {
    settings.workflow = name;
    settings.algorithm.advantage = name[0] == 'p' ? "gae" : "group";
    settings.algorithm.kl_in = "loss";
    settings.models["ref"] = {.ema_decay = 0.9, .ema_every = 3};
    const EmaSource expected{.role = "actor", .decay = 0.9, .every = 3};
    EXPECT_EQ(make_workflow(settings).role("ref").ema, expected) << name;
    settings.models["ref"] = {.ema_decay = 1};
    EXPECT_FALSE(make_workflow(settings).role("ref").ema) << name;
  }
}

TEST(EmaModel, SettingsThatNothingReadsAreRefused) {
  EXPECT_THAT(
    settings_refusal([](Settings& s) { s.models["reward"].ema_decay = 0.5; }),
    AllOf(HasSubstr("models.reward.ema_decay"), HasSubstr("follows"),
          HasSubstr("models.reward.ema_decay=null")));
  EXPECT_THAT(
    settings_refusal([](Settings& s) { s.models["ref"].ema_every = 4; }),
    AllOf(HasSubstr("models.ref.ema_every"), HasSubstr("ema_decay=0.99")));
}

TEST(EmaModel, MistakesOfAWorkflowAreRefused) {
  const auto refused = [](auto change) {
    auto workflow = following_ppo();
    change(workflow);
    return refusal_of([&] { check(workflow); });
  };
  EXPECT_EQ(refused([](Workflow&) {}), "accepted");
  EXPECT_THAT(
    refused([](Workflow& w) { w.roles.back().ema->role = "actr"; }),
    AllOf(HasSubstr("ref follows actr, which is no role"), HasSubstr("actor")));
  EXPECT_THAT(refused([](Workflow& w) { w.roles.back().ema->role = "reward"; }),
              HasSubstr("ref follows reward, which is not trained"));
  EXPECT_THAT(refused([](Workflow& w) { w.roles.back().ema->role = "critic"; }),
              HasSubstr("only critic has a scalar head"));
  EXPECT_THAT(refused([](Workflow& w) { w.roles[1].ema = {.role = "actor"}; }),
              HasSubstr("critic follows actor and is trained itself"));
}

TEST(EmaModel, AnUpdateRunsAfterTrainingAndReadersOfTheOldWeights) {
  const auto workflow = following_ppo();
  const auto graph = ema_graph(workflow, plan_apart(workflow));
  const auto& ema_update = graph.tasks[graph.index_of("ref@ref_inf")];
  EXPECT_EQ(ema_update.kind, TaskKind::move);
  EXPECT_EQ(ema_update.devices, ranks(0, 3)) << "home of the actor and of ref";
  EXPECT_THAT(ema_needs(graph, "ref@ref_inf"),
              AllOf(Contains("actor_train 0 version"),
                    Contains("ref_inf 0 write after read"),
                    Contains("ref@ref_inf 1 order")));
  EXPECT_THAT(ema_needs(graph, "ref_inf"), Contains("ref@ref_inf 1 version"));
  EXPECT_THAT(ema_needs(graph, "actor_train"),
              Contains("ref@ref_inf 1 write after read"));
  EXPECT_THAT(ema_needs(graph, "critic_train"),
              Not(Contains(HasSubstr("ref@"))));
}

TEST(EmaModel, ALaggedReaderDelaysTheUpdate) {
  const auto workflow = following_ppo();
  auto plan = plan_apart(workflow);
  plan.lag = {{"actor_gen", 1}, {"ref_inf", 1}};
  const auto graph = ema_graph(workflow, plan);
  EXPECT_THAT(ema_needs(graph, "ref_inf"), Contains("ref@ref_inf 2 version"));
  EXPECT_THAT(ema_needs(graph, "ref@ref_inf"),
              Contains("ref_inf -1 write after read"));
}

TEST(EmaModel, OffloadedWeightsAreUpdatedInPlace) {
  const auto workflow = following_ppo();
  auto plan = plan_apart(workflow);
  plan.roles["ref"].offload_weights = true;
  plan.roles["actor"].offload_weights = true;
  const auto graph = ema_graph(workflow, plan);
  EXPECT_THAT(ema_needs(graph, "ref@ref_inf"),
              AllOf(Contains("offload ref@ref_inf 0 write after read"),
                    Contains("offload actor@actor_train 0 version")));
  EXPECT_THAT(ema_needs(graph, "reload ref@ref_inf"),
              Contains("ref@ref_inf 1 version"));
}

TEST(EmaModel, EveryReplicaUpdatesItself) {
  auto workflow = following_ppo();
  auto second = workflow.call("ref_inf");
  second.name = "ref_again";
  second.writes = {"more"};
  second.renames = {{"more", "logprobs"}};
  workflow.calls.insert(workflow.calls.begin() + 3, second);
  auto plan = plan_apart(workflow);
  plan.calls["ref_again"] = on(2, 3);
  const auto graph = ema_graph(workflow, plan);
  for (const char* name : {"ref@ref_inf", "ref@ref_again"})
    EXPECT_THAT(ema_needs(graph, name), Contains("actor_train 0 version"));
}

TEST(EmaModel, AVersionIsThatOfTheLastUpdate_I4) {
  const Role each{.name = "ref", .ema = EmaSource{.role = "actor"}};
  auto third = each;
  third.ema->every = 3;
  const Role frozen{.name = "ref"};
  for (std::uint32_t step = 0; step < 10; ++step) {
    EXPECT_EQ(version_for(each, StepId{step}, 0), Version{step});
    EXPECT_EQ(version_for(third, StepId{step}, 0), Version{step / 3 * 3});
    EXPECT_EQ(version_for(frozen, StepId{step}, 0), Version{0});
  }
  EXPECT_EQ(version_for(third, StepId{7}, 2), Version{3});
}

TEST(EmaModel, AnUpdateCostsAMoveOnlyInItsSteps) {
  auto problem = make_problem(shape_7b(), 1, 4);
  problem.hardware.mem_bytes = 0;
  const auto frozen_plan = plan_apart(problem.workflow);
  const auto seconds = [&](const Workflow& workflow) {
    problem.workflow = workflow;
    const CostModel costs(problem);
    const auto run = simulate(problem, costs, frozen_plan);
    const auto found
      = std::ranges::find(run.graph.tasks, "ref@ref_inf", &TaskTemplate::name);
    return found == run.graph.tasks.end()
             ? 0
             : run.durations_s[static_cast<std::size_t>(
               found - run.graph.tasks.begin())];
  };
  const auto frozen = problem.workflow;
  EXPECT_EQ(seconds(frozen), 0);
  const auto each = seconds(following_ppo());
  const CostModel costs(problem);
  EXPECT_DOUBLE_EQ(each,
                   costs.move_s("ref", frozen_plan.calls.at("actor_train"),
                                frozen_plan.calls.at("ref_inf")));
  EXPECT_GT(each, 0);
  EXPECT_DOUBLE_EQ(seconds(following_ppo(4)), each / 4);
}

TEST(EmaModel, AProvedPlanIsTheFastestOfTheSpace) {
  auto problem = make_problem(shape_tiny(), 1, 2, "laptop");
  problem.workflow = following_ppo();
  problem.hardware.mem_bytes = 0;
  problem.hardware.move_s = 0.5;
  const CostModel costs(problem);
  const auto result = search_plan(problem, costs, {});
  EXPECT_TRUE(result.proved);
  EXPECT_LE(result.lower_bound_s, result.best.step_s * (1 + 1e-9));
  const SearchSpace space(problem, costs, {});
  PointCost cost(space, {});
  Walk walk(space, cost, {}, 3);
  for (int i = 0; i < 500; ++i)
    EXPECT_GE(cost.step_s(walk.random_point()),
              result.best.step_s * (1 - 1e-9));
}

} // namespace
} // namespace troupe::plans
