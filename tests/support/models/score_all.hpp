// A Rewarder asked about items that are all there.
#pragma once

#include "models/reward.hpp"

#include <utility>

namespace troupe::models {

inline RewardAnswers score_all(Rewarder& rewarder,
                               std::vector<RewardItem> items) {
  RewardAnswers answers;
  answers.scores.resize(items.size());
  RewardRound round;
  round.take = [&] { return std::exchange(items, {}); };
  round.on_score = [&](std::size_t item, RewardScore score) {
    answers.scores.at(item) = std::move(score);
  };
  round.on_stray
    = [&](std::string stray) { answers.strays.push_back(std::move(stray)); };
  rewarder.score(round);
  return answers;
}

} // namespace troupe::models
