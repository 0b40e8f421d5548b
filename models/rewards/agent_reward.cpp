#include "models/rewards/agent_reward.hpp"

namespace troupe::models {

void AgentRewarder::score(const RewardRound& round) {
  std::size_t number = 0;
  for (auto items = round.take(); !items.empty(); items = round.take())
    for (const auto& item : items) {
      RewardScore score;
      if (item.agent_reward)
        score.parts = {{"score", static_cast<double>(*item.agent_reward)}};
      else
        score.error = "the session of agents.command failed; the worker's log "
                      "says how";
      round.on_score(number++, std::move(score));
    }
}

} // namespace troupe::models
