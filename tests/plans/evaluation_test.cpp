#include "config/error.hpp"
#include "plans/evaluation.hpp"
#include "plans/replicas.hpp"
#include "plans/step_graph.hpp"

#include "tests/plans/support.hpp"
#include <gmock/gmock.h>

namespace troupe::plans {
namespace {

using testing::ElementsAre;

Settings eval_settings() {
  Settings settings;
  settings.eval.data = "rows.jsonl";
  return settings;
}

std::vector<std::string> names_of(const std::vector<Call>& calls) {
  std::vector<std::string> names;
  for (const auto& call : calls)
    names.push_back(call.name);
  return names;
}

TEST(WithEvaluation, LeavesAWorkflowAloneWithoutData) {
  EXPECT_EQ(with_evaluation(make_ppo(), {}), make_ppo());
}

TEST(WithEvaluation, AnswersAreScoredByTwinsOfTheCallsThatScoreInTraining) {
  const auto workflow = with_evaluation(make_ppo(), eval_settings());
  check(workflow);
  EXPECT_EQ(without_evaluation(workflow), make_ppo());
  const auto alone = evaluation_of(workflow);
  check(alone);
  EXPECT_THAT(names_of(alone.calls),
              ElementsAre("eval_actor_gen", "eval_rew_inf", "eval_answers"));
  const auto& scores = alone.call("eval_rew_inf");
  EXPECT_THAT(scores.reads, ElementsAre("eval_sequence_ids"));
  EXPECT_EQ(scores.argument("eval_sequence_ids"), "sequence_ids");
  EXPECT_EQ(scores.argument("eval_scores"), "scores");
  EXPECT_THAT(alone.call("eval_actor_gen").reads, ElementsAre("prompt_ids"));
  for (const auto& role : alone.roles)
    EXPECT_FALSE(role.trained) << role.name;
  EXPECT_EQ(alone.find_role("critic"), nullptr);
}

TEST(WithEvaluation, ARenamedKeyKeepsItsArgument) {
  const auto recompute
    = make_ppo([](Settings& s) { s.algorithm.old_logprobs = "recompute"; });
  const auto workflow = with_evaluation(recompute, eval_settings());
  EXPECT_EQ(workflow.call("eval_actor_gen").argument("eval_rollout_logprobs"),
            "logprobs");
}

TEST(WithEvaluation, ModelsOfGivenRowsAreAskedAboutHeldOutOnes) {
  for (const auto& make : {sft_workflow, reward_workflow}) {
    const auto workflow = with_evaluation(make({}), eval_settings());
    check(workflow);
    const auto alone = evaluation_of(workflow);
    check(alone);
    EXPECT_EQ(alone.calls.size(), 2u);
    EXPECT_EQ(alone.calls[0].kind, CallKind::inference);
  }
}

TEST(WithEvaluation, AWorkflowWithoutScoresIsRefused) {
  auto workflow = make_ppo();
  workflow.calls[1].writes = {"marks"};
  try {
    with_evaluation(workflow, eval_settings());
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("eval.data"));
  }
}

TEST(WithEvaluation, RulesAndProgramsScoreHeldOutAnswersToo) {
  Settings settings = eval_settings();
  settings.reward.kind = "rule";
  const auto workflow = with_evaluation(ppo_workflow(settings), settings);
  check(workflow);
  const auto alone = evaluation_of(workflow);
  const Call& scorer = alone.call("eval_rewards");
  EXPECT_EQ(scorer.fn, "rewards");
  EXPECT_TRUE(scorer.evaluates);
}

TEST(PlaceEvaluation, NeedsNoReplicaOfItsOwnAndGeneratesAtHome) {
  const auto ppo = make_ppo();
  const auto workflow = with_evaluation(ppo, eval_settings());
  const auto plan = place_evaluation(plan_apart(ppo), workflow);
  const auto before = replicas_of(ppo, plan_apart(ppo));
  const auto after = replicas_of(workflow, plan);
  ASSERT_EQ(after.all.size(), before.all.size());
  for (std::size_t i = 0; i < after.all.size(); ++i) {
    EXPECT_EQ(after.all[i].id, before.all[i].id);
    EXPECT_EQ(after.all[i].name(), before.all[i].name());
  }
  EXPECT_EQ(after.of_call("eval_actor_gen"), after.home("actor"));
  EXPECT_EQ(after.of_call("eval_rew_inf"), after.of_call("rew_inf"));
  const auto graph = make_step_graph(evaluation_of(workflow), plan, after);
  EXPECT_EQ(graph.tasks.size(), 3u);
}

TEST(PlaceEvaluation, RefusesToGenerateOnShardedParameters) {
  const auto ppo = make_ppo();
  auto plan = plan_apart(ppo);
  plan.calls["actor_train"].strategy.zero = Zero::z3;
  const auto workflow = with_evaluation(ppo, eval_settings());
  EXPECT_THROW(place_evaluation(plan, workflow), PlanError);
}

} // namespace
} // namespace troupe::plans
