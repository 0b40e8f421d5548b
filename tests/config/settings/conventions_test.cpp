// Settings that algorithm.loss, algorithm.correction and algorithm.like bring
// along, and their combinations that are refused.
#include "config/settings/conventions.hpp"
#include "config/settings/settings.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using troupe::ConfigError;

troupe::Settings load(const std::string& workflow,
                      const std::vector<std::string>& overrides) {
  std::vector<std::string> all
    = {"workflow=" + workflow, "run.steps=60", "models.actor.path=a",
       "reward.kind=rule",     "rollout.n=8",  "data.train=p.jsonl"};
  if (workflow == "ppo")
    all.emplace_back("models.critic.path=c");
  all.insert(all.end(), overrides.begin(), overrides.end());
  return troupe::load_settings({}, all);
}

troupe::Settings grpo(const std::vector<std::string>& overrides) {
  return load("grpo", overrides);
}

std::string error(const std::vector<std::string>& overrides,
                  const std::string& workflow = "grpo") {
  try {
    load(workflow, overrides);
  } catch (const ConfigError& caught) {
    return caught.what();
  }
  return "no error";
}

TEST(Conventions, NothingIsSetWithoutAChoice) {
  EXPECT_THAT(troupe::conventions_in(grpo({})), IsEmpty());
  EXPECT_THAT(troupe::conventions_in(load("ppo", {})), IsEmpty());
  EXPECT_EQ(grpo({}).algorithm.loss.kind, "ppo");
}

TEST(Conventions, ALossBringsTheNumbersOfItsPaper) {
  const auto gspo = grpo({"algorithm.loss=gspo"}).algorithm;
  EXPECT_EQ(gspo.loss.clip_ratio, (troupe::ClipRatio{3e-4, 4e-4}));
  EXPECT_EQ(gspo.loss_mean, "sequence");
  const auto cispo = grpo({"algorithm.loss=cispo"}).algorithm;
  EXPECT_EQ(cispo.loss.clip_ratio, (troupe::ClipRatio{1, 4}));
  EXPECT_EQ(cispo.loss_mean, "token");
  const auto own
    = grpo({"algorithm.loss=gspo", "algorithm.loss_mean=token"}).algorithm;
  EXPECT_EQ(own.loss_mean, "token");
  EXPECT_EQ(own.loss.clip_ratio, gspo.loss.clip_ratio);
}

TEST(Conventions, ACorrectionBringsItsLimits) {
  const auto of = [](const std::string& kind) {
    return grpo({"algorithm.old_logprobs=recompute",
                 "algorithm.correction.kind=" + kind})
      .algorithm.correction;
  };
  EXPECT_EQ(of("tis").cap, 2);
  EXPECT_EQ(of("tis").floor, 0);
  EXPECT_EQ(of("icepop").cap, 5);
  EXPECT_EQ(of("icepop").floor, 0.5);
  EXPECT_EQ(of("sequence_mask").cap, 3);
  EXPECT_EQ(of("rejection").floor, 0.999);
}

TEST(Conventions, ALikenessSetsWhatProgramsDifferIn) {
  const auto verl = grpo({"algorithm.like=verl"});
  EXPECT_EQ(verl.algorithm.kl_in, "none");
  EXPECT_EQ(verl.algorithm.loss.dual_clip, 3);
  EXPECT_EQ(verl.algorithm.group.deviation_eps, 1e-6);
  EXPECT_FALSE(verl.models.contains("ref"));
  const auto trl = grpo({"algorithm.like=trl"});
  EXPECT_EQ(trl.algorithm.group.deviation_eps, 1e-4);
  EXPECT_EQ(trl.algorithm.loss.dual_clip, 0);
  const auto nemo = grpo({"algorithm.like=nemo"});
  EXPECT_EQ(nemo.algorithm.group.baseline, "others");
  EXPECT_EQ(nemo.algorithm.kl_coef, 0.01);
  EXPECT_TRUE(nemo.models.contains("ref"));
  EXPECT_TRUE(grpo({"algorithm.like=areal"}).algorithm.group.whiten_batch);
  const auto openrlhf = load("ppo", {"algorithm.like=openrlhf"});
  EXPECT_EQ(openrlhf.algorithm.group.deviation, "population");
  EXPECT_FALSE(openrlhf.algorithm.discount.bootstrap);
  EXPECT_EQ(openrlhf.algorithm.discount.lam, 1);
  EXPECT_EQ(openrlhf.algorithm.kl_in, "reward");
  EXPECT_EQ(openrlhf.reward.clip, 10);
}

TEST(Conventions, WhatDependsOnTheKlFollowsIt) {
  const auto verl
    = grpo({"algorithm.like=verl", "algorithm.kl_in=loss"}).algorithm;
  EXPECT_EQ(verl.kl_estimator, "k3");
  EXPECT_EQ(verl.kl_coef, 0.001);
  const auto in_reward
    = load("ppo", {"algorithm.like=verl", "algorithm.kl_in=reward"}).algorithm;
  EXPECT_EQ(in_reward.kl_estimator, "k1");
  EXPECT_EQ(grpo({"algorithm.like=verl"}).algorithm.kl_coef,
            troupe::AlgorithmSettings{}.kl_coef);
}

TEST(Conventions, WhatTheUserWroteWins) {
  const auto settings
    = grpo({"algorithm.like=verl", "algorithm.dual_clip=0",
            "algorithm.loss_mean=sequence", "algorithm.deviation_eps=0.5"});
  EXPECT_EQ(settings.algorithm.loss.dual_clip, 0);
  EXPECT_EQ(settings.algorithm.loss_mean, "sequence");
  EXPECT_EQ(settings.algorithm.group.deviation_eps, 0.5);
  for (const auto& set : troupe::conventions_in(settings))
    EXPECT_NE(set.path, "algorithm.dual_clip");
}

TEST(Conventions, ALossComesBeforeALikeness) {
  EXPECT_EQ(
    grpo({"algorithm.like=verl", "algorithm.loss=gspo"}).algorithm.loss_mean,
    "sequence");
}

TEST(Conventions, AreShownWithTheChoiceThatSetThem) {
  std::vector<std::string> shown;
  for (const auto& set : troupe::conventions_in(grpo({"algorithm.like=trl"})))
    shown.push_back(set.path + " " + set.value + " " + set.by);
  EXPECT_THAT(shown, ::testing::Contains(
                       "algorithm.deviation_eps 1.0e-4 algorithm.like: trl"));
}

TEST(Conventions, ResolvedSettingsReadBackEqual) {
  for (const char* like : {"verl", "openrlhf", "trl", "nemo", "areal"})
    for (const char* loss :
         {"ppo", "gspo", "cispo", "sapo", "gmpo", "clip_cov", "kl_cov"}) {
      const auto settings = grpo({std::string("algorithm.like=") + like,
                                  std::string("algorithm.loss=") + loss,
                                  "algorithm.old_logprobs=recompute",
                                  "algorithm.correction.kind=sequence_mask"});
      const auto again
        = troupe::parse_settings(print_settings(settings), "again");
      EXPECT_EQ(again, settings) << like << " " << loss;
      EXPECT_THAT(troupe::conventions_in(again), IsEmpty());
    }
  for (const char* like : {"verl", "openrlhf", "areal"}) {
    const auto settings = load("ppo", {std::string("algorithm.like=") + like});
    EXPECT_EQ(troupe::parse_settings(print_settings(settings), "again"),
              settings)
      << like;
  }
}

TEST(LossChecks, AWeightNeedsAnOldPolicyOfTheTrainer) {
  for (const char* kind :
       {"tis", "icepop", "sequence_tis", "sequence_mask", "geometric_mask"})
    EXPECT_THAT(error({std::string("algorithm.correction.kind=") + kind}),
                HasSubstr("try algorithm.old_logprobs=recompute"));
  EXPECT_EQ(error({"algorithm.correction.kind=rejection"}), "no error");
  EXPECT_EQ(error({"algorithm.correction.kind=tis",
                   "algorithm.old_logprobs=recompute"}),
            "no error");
}

TEST(LossChecks, GmpoTakesNoWeightsOfTokens) {
  EXPECT_THAT(error({"algorithm.correction.kind=tis", "algorithm.loss=gmpo",
                     "algorithm.old_logprobs=recompute"}),
              HasSubstr("gmpo, which has one ratio per response"));
}

TEST(LossChecks, LimitsAreInOrder) {
  EXPECT_THAT(error({"algorithm.correction={kind: icepop, floor: 3, cap: 2}",
                     "algorithm.old_logprobs=recompute"}),
              HasSubstr("algorithm.correction.floor: expected a number < "
                        "algorithm.correction.cap (2), got 3"));
  EXPECT_THAT(error({"algorithm.loss=clip_cov", "algorithm.cov_range=[5, 1]"}),
              HasSubstr("algorithm.cov_range"));
  EXPECT_THAT(error({"reward.overlong_tokens=300"}),
              HasSubstr("rollout.max_new_tokens (256)"));
}

TEST(LossChecks, WhatALossIgnoresIsRefused) {
  EXPECT_THAT(error({"algorithm.loss=sapo", "algorithm.clip_ratio=0.1"}),
              HasSubstr("got sapo, which ignores this setting"));
  EXPECT_THAT(error({"algorithm.loss=gspo", "algorithm.dual_clip=3"}),
              HasSubstr("got gspo, which ignores this setting"));
  EXPECT_THAT(error({"algorithm.correction.cap=3"}),
              HasSubstr("algorithm.correction.kind set"));
  EXPECT_THAT(error({"algorithm.cov_share=0.1"}), HasSubstr("clip_cov"));
}

TEST(LossChecks, ALikenessWithoutACriticIsRefusedWithOne) {
  EXPECT_THAT(error({"algorithm.like=trl"}, "ppo"),
              HasSubstr("'trl', known here without a critic only"));
  EXPECT_EQ(error({"algorithm.like=areal"}, "ppo"), "no error");
}

} // namespace
