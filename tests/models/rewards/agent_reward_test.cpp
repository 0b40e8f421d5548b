// Rewards that programs of agents gave.
#include "models/rewards/agent_reward.hpp"

#include <gtest/gtest.h>

namespace troupe::models {
namespace {

std::vector<RewardScore> agent_scores(std::vector<RewardItem> items) {
  std::vector<RewardScore> scores(items.size());
  RewardRound round;
  round.take = [&] { return std::exchange(items, {}); };
  round.on_score = [&](std::size_t item, RewardScore score) {
    scores.at(item) = std::move(score);
  };
  AgentRewarder().score(round);
  return scores;
}

TEST(AgentRewarder, GivesTheNumbersOfThePrograms) {
  const auto scores
    = agent_scores({{.agent_reward = 0.5F}, {.agent_reward = -1.0F}});
  EXPECT_EQ(scores[0].parts.at(0).second, 0.5);
  EXPECT_EQ(scores[1].parts.at(0).second, -1.0);
  EXPECT_EQ(scores[1].error, "");
}

TEST(AgentRewarder, AFailedSessionIsAnError) {
  const auto scores = agent_scores({{.agent_reward = {}}});
  EXPECT_TRUE(scores[0].parts.empty());
  EXPECT_NE(scores[0].error, "");
}

TEST(RewardItem, IsLikeOthersWithTheSameNumberOnly) {
  const RewardItem item{.response = "a", .agent_reward = 1.0F};
  EXPECT_TRUE(item.is_like({.response = "a", .agent_reward = 1.0F}));
  EXPECT_FALSE(item.is_like({.response = "a", .agent_reward = 0.0F}));
  EXPECT_FALSE(item.is_like({.response = "a"}));
}

} // namespace
} // namespace troupe::models
