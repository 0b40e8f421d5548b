#include "config/base/error.hpp"
#include "plans/schedule/step_graph.hpp"
#include "plans/simulate/simulator.hpp"
#include "plans/weights/replicas.hpp"
#include "plans/workflow/evaluation.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>

namespace troupe::plans {
namespace {

using ::testing::ElementsAre;

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

TEST(WithEvaluation, LeavesAWorkflowUnchangedWithoutData) {
  EXPECT_EQ(with_evaluation(make_ppo(), {}), make_ppo());
}

TEST(WithEvaluation, ResponsesAreScoredByEvaluationCopiesOfTrainingCalls) {
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

TEST(WithEvaluation, ResponsesHaveNoMasks) {
  const auto masked
    = make_ppo([](Settings& s) { s.algorithm.loss.sampling_mask = true; });
  const auto workflow = with_evaluation(masked, eval_settings());
  check(workflow);
  const auto& call = workflow.call("eval_actor_gen");
  EXPECT_EQ(call.writes.size() + 2, workflow.call("actor_gen").writes.size());
  EXPECT_EQ(workflow.writer("eval_kept_ids"), nullptr);
}

TEST(WithEvaluation, ModelsOfGivenRowsAreEvaluatedOnHeldOutRows) {
  for (const auto& make : {sft_workflow, reward_workflow}) {
    const auto workflow = with_evaluation(make({}), eval_settings());
    check(workflow);
    const auto alone = evaluation_of(workflow);
    check(alone);
    EXPECT_EQ(alone.calls.size(), 2u);
    EXPECT_EQ(alone.calls[0].kind, CallKind::inference);
  }
}

TEST(WithEvaluation, LabelsAreEvaluatedWithMismatchedPairsOfTheirOwn) {
  const auto workflow = with_evaluation(kto_workflow({}), eval_settings());
  check(workflow);
  const auto alone = evaluation_of(workflow);
  check(alone);
  EXPECT_EQ(alone.call("eval_mismatch").fn, "kto_mismatch");
  EXPECT_EQ(alone.call("eval_labels").reads.size(), 7u);
  EXPECT_EQ(alone.find_call("eval_kl"), nullptr)
    << "train/kl is a metric of training";
  const auto kto = without_evaluation(workflow);
  EXPECT_EQ(kto.calls.size(), kto_workflow({}).calls.size());
}

TEST(WithEvaluation, AWorkflowWithoutScoresIsRefused) {
  auto workflow = make_ppo();
  workflow.calls[1].writes = {"marks"};
  EXPECT_THAT(refusal_of([&] { with_evaluation(workflow, eval_settings()); }),
              ::testing::HasSubstr("eval.data"));
}

TEST(WithEvaluation, RulesAndProgramsScoreHeldOutResponses) {
  Settings settings = eval_settings();
  settings.reward.kind = "rule";
  const auto workflow = with_evaluation(ppo_workflow(settings), settings);
  check(workflow);
  const auto alone = evaluation_of(workflow);
  const Call& scorer = alone.call("eval_rewards");
  EXPECT_EQ(scorer.fn, "rewards");
  EXPECT_TRUE(scorer.evaluates);
}

TEST(PlaceEvaluation, NeedsNoExtraReplicaAndGeneratesAtHome) {
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

/// PPO of the tiny shape on four devices, evaluated on 64 rows every 5 steps.
PlanProblem evaluated_problem() {
  auto problem = make_problem(shape_tiny(), 1, 4, "laptop");
  auto settings = eval_settings();
  settings.workflow = "ppo";
  settings.eval.max_rows = 64;
  settings.eval.every = 5;
  problem.evaluation = evaluation_in(problem.workflow, settings, 512);
  return problem;
}

TEST(EvaluationIn, HasItsOwnSamples) {
  const auto evaluation = evaluated_problem().evaluation;
  EXPECT_EQ(evaluation.samples, 64u);
  EXPECT_EQ(evaluation.every, 5u);
  auto settings = eval_settings();
  EXPECT_EQ(evaluation_in(make_ppo(), settings, 512).samples, 512u);
  settings.eval.max_rows = 3;
  settings.eval.n = 4;
  EXPECT_EQ(evaluation_in(make_ppo(), settings, 512).samples, 12u);
  EXPECT_TRUE(evaluation_in(make_ppo(), {}, 512).none());
}

TEST(EvaluationIn, ItsTasksCountInTheMemoryOfTrainingDevices) {
  const auto problem = evaluated_problem();
  auto silent = problem;
  silent.evaluation = {};
  const auto plan = plan_apart(problem.workflow);
  const auto report = check_plan(problem, plan);
  ASSERT_TRUE(report.ok());
  const auto tasks = [](const DevicePeak& peak) {
    std::vector<std::string> names;
    for (const auto& task : peak.tasks)
      names.push_back(task.task);
    return names;
  };
  // actor trains on 2-3, reward scores on 0-1
  EXPECT_THAT(tasks(report.devices[2]), ::testing::Contains("eval_actor_gen"));
  EXPECT_THAT(tasks(report.devices[0]), ::testing::Contains("eval_rew_inf"));
  EXPECT_THAT(tasks(report.devices[0]),
              ::testing::Not(::testing::Contains("eval_actor_gen")));
  EXPECT_EQ(check_plan(silent, plan).devices[0].resident_bytes,
            report.devices[0].resident_bytes);
}

TEST(EvaluationIn, APeakOfEvaluationIsNamed) {
  auto problem = evaluated_problem();
  problem.evaluation.samples = 100'000; // their cache is the largest of all
  auto plan = plan_apart(problem.workflow);
  const auto report = check_plan(problem, plan);
  EXPECT_EQ(report.devices[2].at_task, "eval_actor_gen");
  problem.hardware.mem_bytes = double(report.devices[2].peak_bytes - 1);
  problem.hardware.reserve_bytes = 0;
  const auto refused = check_plan(problem, plan);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.errors.front().path, "calls.eval_actor_gen");
}

TEST(EvaluationIn, GenerationOnShardedParametersNeedsAFullCache) {
  auto problem = evaluated_problem();
  problem.sizes.engine.storage = StorageRule::host;
  auto plan = plan_apart(problem.workflow);
  const auto of_evaluation = [&](const char* strategy) {
    plan.calls["actor_train"].strategy = parse_strategy(strategy);
    const auto report = check_plan(problem, plan);
    EXPECT_TRUE(report.ok());
    for (const auto& task : report.devices[2].tasks)
      if (task.task == "eval_actor_gen")
        return task.bytes;
    return std::uint64_t{0};
  };
  const auto weights = num_parameters(shape_tiny()) * sizeof(float);
  EXPECT_NEAR(double(of_evaluation("d2z3") - of_evaluation("d2")),
              double(weights), 0.01 * double(weights));
}

TEST(EvaluationIn, HasACacheOfOursWhereServersGenerateForTraining) {
  const auto problem = evaluated_problem();
  auto served = problem;
  served.sizes.engine.serves = true;
  const auto plan = plan_apart(problem.workflow);
  const auto own = check_plan(problem, plan);
  const auto report = check_plan(served, plan);
  EXPECT_FALSE(report.rooms.contains("actor_gen"));
  EXPECT_EQ(report.rooms.at("eval_actor_gen"), own.rooms.at("eval_actor_gen"));
  const auto task = [](const PlanReport& found) {
    const auto& tasks = found.devices[2].tasks;
    return *std::ranges::find(tasks, "eval_actor_gen", &TaskMemory::task);
  };
  EXPECT_EQ(task(report), task(own));
}

TEST(EvaluationIn, ItsSecondsAreReportedBesideThoseOfAStep) {
  const auto problem = evaluated_problem();
  const CostModel costs(problem);
  const auto plan = plan_apart(problem.workflow);
  const auto run = simulate(problem, costs, plan);
  auto silent = problem;
  silent.evaluation = {};
  EXPECT_DOUBLE_EQ(run.step_s, simulate(silent, costs, plan).step_s);
  EXPECT_EQ(simulate(silent, costs, plan).evaluation_s, 0);
  EXPECT_GT(run.evaluation_s, 0);
  auto more = problem;
  more.evaluation.samples *= 100;
  EXPECT_GT(simulate(more, costs, plan).evaluation_s, run.evaluation_s);
}

} // namespace
} // namespace troupe::plans
