#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "config/settings/workflow_traits.hpp"
#include "plans/workflow/workflow.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

#include <functional>

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace troupe::plans {
namespace {

Workflow ppo(const std::function<void(Settings&)>& change = {}) {
  Settings settings;
  settings.workflow = "ppo";
  if (change)
    change(settings);
  auto workflow = ppo_workflow(settings);
  check(workflow);
  return workflow;
}

std::string refusal(const Workflow& workflow) {
  return refusal_of([&] { check(workflow); });
}

std::vector<std::string> producers_of(const Workflow& workflow,
                                      const std::string& name) {
  std::vector<std::string> names;
  const auto index = &workflow.call(name) - workflow.calls.data();
  for (const auto producer : producers(workflow, std::size_t(index)))
    names.push_back(workflow.calls[producer].name);
  return names;
}

TEST(Workflow, PpoEdgesFollowFromKeys) {
  const auto workflow = ppo();
  EXPECT_THAT(producers_of(workflow, "actor_gen"), ElementsAre());
  EXPECT_THAT(producers_of(workflow, "rew_inf"), ElementsAre("actor_gen"));
  EXPECT_THAT(producers_of(workflow, "critic_inf"), ElementsAre("actor_gen"));
  EXPECT_THAT(producers_of(workflow, "advantages"),
              ElementsAre("actor_gen", "rew_inf", "ref_inf", "critic_inf"));
  EXPECT_THAT(producers_of(workflow, "actor_train"),
              ElementsAre("actor_gen", "advantages"));
  EXPECT_THAT(producers_of(workflow, "critic_train"),
              ElementsAre("actor_gen", "critic_inf", "advantages"));
}

TEST(Workflow, ReMaxScoresTheGreedyResponseLikeTheSampledOne) {
  Settings settings;
  settings.workflow = "grpo";
  settings.algorithm.advantage = "remax";
  const auto workflow = grpo_workflow(settings);
  check(workflow);
  EXPECT_THAT(producers_of(workflow, "greedy_rew_inf"),
              ElementsAre("greedy_actor_gen"));
  EXPECT_TRUE(workflow.call("greedy_actor_gen").greedy);
  EXPECT_FALSE(workflow.call("actor_gen").greedy);
  EXPECT_THAT(producers_of(workflow, "advantages"), Contains("greedy_rew_inf"));
  EXPECT_THAT(producers_of(workflow, "actor_train"),
              Not(Contains("greedy_actor_gen")));
}

TEST(Workflow, RecomputedLogprobsComeFromASeparateCall) {
  const auto workflow
    = ppo([](Settings& s) { s.algorithm.old_logprobs = "recompute"; });
  EXPECT_EQ(workflow.writer("logprobs")->name, "actor_inf");
  EXPECT_EQ(workflow.writer("rollout_logprobs")->name, "actor_gen");
  EXPECT_EQ(workflow.call("actor_gen").argument("rollout_logprobs"),
            "logprobs");
  EXPECT_THAT(workflow.call("actor_train").reads, Contains("rollout_logprobs"));
}

TEST(Workflow, MasksAreReadByWhateverComputesLogprobs) {
  const auto masked = [](Settings& s) {
    s.algorithm.loss.sampling_mask = true;
    s.algorithm.old_logprobs = "recompute";
  };
  const auto workflow = ppo(masked);
  check(workflow);
  for (const char* key : {"kept_counts", "kept_ids"}) {
    EXPECT_EQ(workflow.writer(key)->name, "actor_gen");
    for (const char* call : {"ref_inf", "actor_inf", "actor_train"})
      EXPECT_THAT(workflow.call(call).reads, Contains(key)) << call;
    for (const char* call : {"rew_inf", "critic_inf", "critic_train"})
      EXPECT_THAT(workflow.call(call).reads, Not(Contains(key))) << call;
    EXPECT_EQ(ppo().writer(key), nullptr);
  }
  Settings remax;
  remax.workflow = "grpo";
  remax.algorithm.advantage = "remax";
  remax.algorithm.loss.sampling_mask = true;
  const auto greedy = grpo_workflow(remax);
  check(greedy);
  EXPECT_THAT(greedy.call("greedy_actor_gen").writes,
              Not(Contains("greedy_kept_ids")));
}

TEST(Workflow, WithoutAKlTermThereIsNoReferenceModel) {
  const auto workflow = ppo([](Settings& s) { s.algorithm.kl_in = "none"; });
  EXPECT_EQ(workflow.find_role("ref"), nullptr);
  EXPECT_EQ(workflow.find_call("ref_inf"), nullptr);
}

TEST(Workflow, KlInTheLossIsReadByTheActorsTraining) {
  const auto workflow = ppo([](Settings& s) { s.algorithm.kl_in = "loss"; });
  EXPECT_THAT(workflow.call("actor_train").reads, Contains("ref_logprobs"));
  EXPECT_THAT(workflow.call("advantages").reads, Not(Contains("ref_logprobs")));
}

TEST(Workflow, RulesAndProgramsReplaceTheRewardModel) {
  const auto workflow = ppo([](Settings& s) { s.reward.kind = "python"; });
  EXPECT_EQ(workflow.find_role("reward"), nullptr);
  EXPECT_EQ(workflow.find_call("rew_inf"), nullptr);
  EXPECT_EQ(workflow.writer("scores")->kind, CallKind::function);
  EXPECT_THAT(producers_of(workflow, "advantages"),
              ElementsAre("actor_gen", "rewards", "ref_inf", "critic_inf"));
}

TEST(Workflow, TheNumbersOfAgentsGoFromTheGenerationToTheRewards) {
  const auto workflow = ppo([](Settings& s) {
    s.reward.kind = "agents";
    s.rollout.engine.agents.command = "run";
  });
  EXPECT_TRUE(workflow.call("actor_gen").by.user_actor);
  EXPECT_THAT(workflow.call("actor_gen").writes, Contains("agent_rewards"));
  EXPECT_THAT(workflow.call("rewards").reads, Contains("agent_rewards"));
  const auto by_rule = ppo([](Settings& s) {
    s.reward.kind = "rule";
    s.rollout.engine.agents.command = "run";
  });
  EXPECT_TRUE(by_rule.call("actor_gen").by.user_actor);
  EXPECT_EQ(by_rule.writer("agent_rewards"), nullptr);
}

TEST(Workflow, SamplesWithoutAScoreAreMaskedForTrainingOnly) {
  const auto workflow = ppo([](Settings& s) {
    s.reward.kind = "python";
    s.reward.on_error = "skip";
  });
  EXPECT_EQ(workflow.writer("train_mask")->name, "advantages");
  for (const char* train : {"actor_train", "critic_train"}) {
    EXPECT_THAT(workflow.call(train).reads, Contains("train_mask"));
    EXPECT_THAT(workflow.call(train).reads, Not(Contains("loss_mask")));
    EXPECT_EQ(workflow.call(train).argument("train_mask"), "loss_mask");
  }
  EXPECT_THAT(workflow.call("critic_inf").reads, Not(Contains("train_mask")));
}

TEST(Workflow, TruncatedResponsesAreMaskedForTrainingIfAsked) {
  const auto workflow
    = ppo([](Settings& s) { s.reward.long_response.mask_truncated = true; });
  EXPECT_THAT(workflow.call("actor_train").reads, Contains("train_mask"));
  EXPECT_EQ(ppo([](Settings&) {}).writer("train_mask"), nullptr);
}

TEST(Workflow, AnAdaptiveCoefficientIsCarriedFromStepToStep) {
  EXPECT_TRUE(ppo().carried.empty());
  const auto adaptive
    = ppo([](Settings& s) { s.algorithm.kl_control.target = 6; });
  EXPECT_THAT(adaptive.carried,
              ElementsAre(CarriedValue{"kl_coef", 0.1, "actor/kl_coef"}));
}

TEST(Workflow, SftAndRewardReadOnlyTheDataSet) {
  for (const auto& workflow : {sft_workflow({}), reward_workflow({})}) {
    EXPECT_EQ(refusal(workflow), "accepted");
    EXPECT_EQ(workflow.calls.size(), 1u);
    EXPECT_EQ(workflow.calls[0].reads, workflow.dataset_keys);
    EXPECT_TRUE(workflow.roles[0].trained);
  }
}

TEST(Workflow, TwoWritersOfAKeyAreRefused) {
  auto workflow = ppo();
  workflow.calls[1].writes.push_back("values");
  EXPECT_EQ(refusal(workflow), "workflow ppo: key values has two writers: "
                               "rew_inf and critic_inf");
}

TEST(Workflow, AnUnwrittenKeyIsRefusedWithTheNearestName) {
  auto workflow = ppo();
  workflow.calls[1].reads = {"sequence_id"};
  EXPECT_EQ(refusal(workflow),
            "workflow ppo: call rew_inf reads key 'sequence_id', which nobody "
            "writes; try 'sequence_ids'");
}

TEST(Workflow, AnUnknownRoleIsRefusedWithTheNearestName) {
  auto workflow = ppo();
  workflow.calls[1].role = "rewards";
  EXPECT_EQ(refusal(workflow), "workflow ppo: call rew_inf: unknown role "
                               "'rewards'; try 'reward'");
}

TEST(Workflow, ACycleOfCallsIsRefusedByName) {
  auto workflow = ppo();
  workflow.calls[0].reads.push_back("advantages");
  EXPECT_THAT(refusal(workflow), HasSubstr("calls wait for each other in a "
                                           "circle: "));
  EXPECT_THAT(refusal(workflow), HasSubstr("actor_gen -> "));
}

TEST(Workflow, UnreadOutputsAreRefused) {
  auto workflow = ppo();
  for (auto& call : workflow.calls)
    std::erase(call.reads, "scores");
  EXPECT_EQ(refusal(workflow),
            "workflow ppo: nobody reads what call rew_inf writes");
}

TEST(Workflow, EveryOtherMistakeOfAnAuthorIsRefused) {
  const auto refused = [](auto change) {
    auto workflow = ppo();
    change(workflow);
    return refusal(workflow);
  };
  EXPECT_THAT(refused([](Workflow& w) { w.calls.clear(); }),
              HasSubstr("it has no calls"));
  EXPECT_THAT(refused([](Workflow& w) { w.calls[2].name = "rew_inf"; }),
              HasSubstr("call rew_inf occurs twice"));
  EXPECT_THAT(refused([](Workflow& w) { w.calls[2].name = "rew/inf"; }),
              HasSubstr("call 'rew/inf' has more in its name than letters"));
  EXPECT_THAT(refused([](Workflow& w) { w.roles[1].name = "../critic"; }),
              HasSubstr("role '../critic' has more in its name"));
  EXPECT_THAT(refused([](Workflow& w) {
                w.roles.push_back({"state"});
                w.calls.push_back({.name = "say",
                                   .kind = CallKind::generate,
                                   .role = "state",
                                   .reads = {"prompt_ids"},
                                   .fn = "generate"});
              }),
              HasSubstr("try another name for role state"));
  EXPECT_THAT(refused([](Workflow& w) { w.roles[0].trained = false; }),
              HasSubstr("actor_train trains role actor, which is not"));
  EXPECT_THAT(refused([](Workflow& w) { w.roles.push_back({"judge"}); }),
              HasSubstr("no call uses role judge"));
  EXPECT_THAT(refused([](Workflow& w) { w.roles[2].trained = true; }),
              HasSubstr("no call trains role reward"));
  EXPECT_THAT(refused([](Workflow& w) { w.dataset_keys = {}; }),
              HasSubstr("reads key 'prompt_ids', which nobody writes"));
  EXPECT_THAT(refused([](Workflow& w) { w.dataset_keys.push_back("images"); }),
              HasSubstr("nobody reads data-set key images"));
  EXPECT_THAT(
    refused([](Workflow& w) { w.dataset_keys.push_back("values"); }),
    HasSubstr("key values comes from the data set, critic_inf must not"));
  EXPECT_THAT(
    refused([](Workflow& w) {
      w.calls[1].renames = {{"x", "y"}};
    }),
    HasSubstr("call rew_inf renames key x, which it neither reads nor"));
}

TEST(MakeWorkflow, KnowsItsNames) {
  for (const auto& name : troupe::workflow_names()) {
    Settings settings;
    settings.workflow = name;
    if (name == "grpo") { // as filled in when its settings are read
      settings.algorithm.advantage = "group";
      settings.algorithm.kl_in = "loss";
    }
    EXPECT_EQ(make_workflow(settings).name, name);
  }
}

TEST(MakeWorkflow, MistakesNameTheSettingAndItsPlace) {
  EXPECT_EQ(
    settings_refusal([](Settings& s) {
      s.workflow = "pppo";
      s.places["workflow"] = {"run.yaml", 7};
    }),
    "run.yaml:7: workflow: expected one of sft, reward, dpo, kto, ppo, grpo, "
    "distillation, "
    "got 'pppo'; try ppo");
  EXPECT_EQ(settings_refusal([](Settings& s) { s.models["critik"] = {}; }),
            "models.critik: expected a role of workflow ppo (actor, critic, "
            "reward, ref), got 'critik'; try critic");
  EXPECT_EQ(
    settings_refusal([](Settings& s) { s.algorithm.advantage = "rloo"; }),
    "algorithm.advantage: expected gae, got 'rloo'; try gae");
}

Workflow grpo(const std::function<void(Settings&)>& change = {}) {
  Settings settings;
  settings.workflow = "grpo";
  settings.algorithm.advantage = "group";
  settings.algorithm.kl_in = "loss";
  if (change)
    change(settings);
  return make_workflow(settings);
}

TEST(MakeWorkflow, GrpoHasNoCriticAndComparesOnTheHost) {
  const auto workflow = grpo();
  EXPECT_EQ(workflow.find_role("critic"), nullptr);
  EXPECT_TRUE(workflow.samples_are_prompts);
  EXPECT_THAT(producers_of(workflow, "advantages"),
              ElementsAre("actor_gen", "rew_inf"));
  EXPECT_THAT(producers_of(workflow, "actor_train"),
              ElementsAre("actor_gen", "ref_inf", "advantages"));
  const auto ruled = grpo([](Settings& s) {
    s.reward.kind = "rule";
    s.algorithm.kl_in = "none";
  });
  EXPECT_EQ(ruled.roles.size(), 1U);
  EXPECT_THAT(producers_of(ruled, "advantages"),
              ElementsAre("actor_gen", "rewards"));
}

TEST(MakeWorkflow, GrpoTakesTokenKlOnlyIntoWholeReturns) {
  const auto in_reward = [](const char* advantage) {
    return [=](Settings& s) {
      s.algorithm.advantage = advantage;
      s.algorithm.kl_in = "reward";
    };
  };
  EXPECT_THROW(grpo(in_reward("group")), ConfigError);
  const auto workflow = grpo(in_reward("reinforce_pp"));
  EXPECT_THAT(workflow.call("advantages").reads, Contains("ref_logprobs"));
  EXPECT_THROW(grpo([](Settings& s) { s.algorithm.advantage = "gae"; }),
               ConfigError);
}

TEST(MakeWorkflow, KtoComparesWithThePointBeforeItTrains) {
  Settings settings;
  settings.workflow = "kto";
  const auto kto = make_workflow(settings);
  EXPECT_THAT(producers_of(kto, "kl"),
              ElementsAre("mismatch", "ref_kl_inf", "actor_kl_inf"));
  EXPECT_THAT(producers_of(kto, "actor_train"), ElementsAre("ref_inf", "kl"));
  EXPECT_EQ(kto.call("kl").scope, Scope::batch);
}

TEST(MakeWorkflow, MarginsAreReadWhereRowsHaveThem) {
  Settings settings;
  settings.workflow = "reward";
  EXPECT_THAT(make_workflow(settings).dataset_keys,
              Not(Contains("pair_margin")));
  settings.data.fields = {{"margin", "gap"}};
  const auto reward = make_workflow(settings);
  EXPECT_THAT(reward.dataset_keys, Contains("pair_margin"));
  EXPECT_THAT(reward.calls.front().reads, Contains("pair_margin"));
}

TEST(MakeWorkflow, OnlyTheActorsTrainingHasTextsBesideIt) {
  Settings settings;
  settings.workflow = "ppo";
  settings.data.batch_size = 16;
  settings.data.ptx = "texts.jsonl";
  const auto workflow = make_workflow(settings);
  EXPECT_EQ(workflow.call("actor_train").rows.ptx, 16U);
  EXPECT_EQ(workflow.call("critic_train").rows.ptx, 0U);
  settings.data.ptx_batch_size = 5;
  EXPECT_EQ(make_workflow(settings).call("actor_train").rows.ptx, 5U);
}

TEST(MakeWorkflow, TheReferenceModelMayBeLeftOutOrUnused) {
  EXPECT_EQ(settings_refusal([](Settings& s) { s.models["actor"] = {}; }),
            "accepted");
  EXPECT_EQ(settings_refusal([](Settings& s) {
              s.models["ref"] = {};
              s.algorithm.kl_in = "none";
            }),
            "accepted");
}

} // namespace
} // namespace troupe::plans
