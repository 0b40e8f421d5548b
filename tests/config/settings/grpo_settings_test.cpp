// Settings of workflows that compare the responses to a prompt.
#include "config/settings/settings.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using troupe::ConfigError;

class GrpoSettings : public ::testing::Test {
protected:
  /// A valid file and `lines`, each of which is a line of it; overrides win.
  static troupe::Settings load(const std::vector<std::string>& overrides) {
    std::vector<std::string> all
      = {"workflow=grpo",    "run.steps=60", "models.actor.path=a",
         "reward.kind=rule", "rollout.n=8",  "data.train=p.jsonl"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return troupe::load_settings({}, all);
  }
  static std::string error(const std::vector<std::string>& overrides) {
    try {
      load(overrides);
    } catch (const ConfigError& caught) {
      return caught.what();
    }
    return "no error";
  }
};

TEST_F(GrpoSettings, HaveTheirOwnDefaultsAndNoCritic) {
  const auto settings = load({});
  EXPECT_EQ(settings.algorithm.advantage, "group");
  EXPECT_EQ(settings.algorithm.kl_in, "loss");
  EXPECT_EQ(settings.models.at("ref").path, "a");
  EXPECT_EQ(troupe::parse_settings(print_settings(settings), "again"),
            settings);
  EXPECT_EQ(error({"algorithm.lam=0.5"}),
            "command line: algorithm.lam: expected algorithm.advantage to be "
            "gae, got group, which ignores this setting; try removing it "
            "(algorithm.lam=null)");
  EXPECT_EQ(error({"models.critic.path=c"}),
            "command line: models.critic: expected a role of workflow grpo "
            "(actor, ref, reward or opponent), got 'critic'; try removing it "
            "(models.critic=null)");
}

TEST_F(GrpoSettings, OneSamplePerPromptIsRefused) {
  EXPECT_EQ(error({"rollout.n=1"}),
            "command line: rollout.n: expected a whole number >= 2 "
            "(algorithm.advantage group compares the answers to a prompt), got "
            "1; try rollout.n=8");
  EXPECT_EQ(error({"rollout.n=null"}),
            "command line: rollout.n: expected a whole number >= 2 "
            "(algorithm.advantage group compares the answers to a prompt), got "
            "1, the default; try rollout.n=8");
  EXPECT_THAT(error({"rollout.n=1", "algorithm.advantage=rloo"}),
              ::testing::HasSubstr("algorithm.advantage rloo compares"));
  for (const char* alone : {"remax", "reinforce_pp"})
    EXPECT_EQ(
      error({"rollout.n=1", std::string("algorithm.advantage=") + alone}),
      "no error")
      << alone;
}

TEST_F(GrpoSettings, TheAggregationOfDrGrpoHasAName) {
  EXPECT_EQ(load({"algorithm.loss_mean=horizon"}).algorithm.loss_mean,
            "horizon");
  EXPECT_EQ(error({"algorithm.loss_mean=length"}),
            "command line: algorithm.loss_mean: expected one of token, "
            "sequence or horizon, got 'length'");
  EXPECT_THAT(troupe::explain_settings("algorithm.loss_mean"),
              ::testing::HasSubstr("rollout.max_new_tokens"));
}

} // namespace
