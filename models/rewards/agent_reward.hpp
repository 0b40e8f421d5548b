// Rewards of programs that led the conversations (reward.kind: agents): the
// numbers are there already.
#pragma once

#include "models/rewards/reward.hpp"

namespace troupe::models {

/// Gives each item the number of its program; one whose session failed is an
/// error.
class AgentRewarder : public Rewarder {
public:
  void score(const RewardRound& round) override;
};

} // namespace troupe::models
