// Scores items that are all present, through a Rewarder.
#pragma once

#include "models/rewards/reward.hpp"

#include <utility>

namespace troupe::models {

inline RewardReplies score_all(Rewarder& rewarder,
                               std::vector<RewardItem> items) {
  RewardReplies replies;
  replies.scores.resize(items.size());
  RewardRound round;
  round.take = [&] { return std::exchange(items, {}); };
  round.on_score = [&](std::size_t item, RewardScore score) {
    replies.scores.at(item) = std::move(score);
  };
  round.on_unmatched = [&](std::string unmatched) {
    replies.unmatched.push_back(std::move(unmatched));
  };
  rewarder.score(round);
  return replies;
}

} // namespace troupe::models
