// Rewards without a reward model: the items that a rule, a program or a server
// gets about a response, and the scores that it returns. A Rewarder computes
// them.
#pragma once

#include "config/base/error.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe {
struct Settings;
} // namespace troupe
namespace troupe::net {
class WakeEvent;
} // namespace troupe::net

namespace troupe::models {

/// A response to score, with its row of the data set.
struct RewardItem {
  std::string id;        ///< "step 3 sample 17", unique in the run
  std::string requester; ///< "rewards of step 3": requester of its score
  std::string prompt;
  std::string response;
  std::string ground_truth;
  std::string data_source;
  std::string extra_info;       ///< JSON; "" if the row has none
  std::uint32_t num_tokens = 0; ///< of the response
  Place place;                  ///< of the row
  /// Number of the program that led the conversation; nothing: it failed, or
  /// there was none.
  std::optional<float> agent_reward = {};

  /// Returns true if the other item must get the same score.
  bool is_like(const RewardItem& other) const {
    const auto content = [](const RewardItem& item) {
      return std::tie(item.prompt, item.response, item.ground_truth,
                      item.data_source, item.extra_info, item.num_tokens,
                      item.agent_reward);
    };
    return content(*this) == content(other);
  }
};

struct RewardScore {
  /// Scores by name: those of rules, or "score" and the entries of `extra`.
  std::vector<std::pair<std::string, double>> parts;
  std::string error; ///< why there is no score; empty: none
  bool late = false; ///< the error is a timeout
};

struct RewardReplies {
  std::vector<RewardScore> scores;    ///< one per item, in order
  std::vector<std::string> unmatched; ///< unmatched replies
};

/// Items to score, both existing and arriving ones, and the callbacks for their
/// scores. Items are numbered in the order in which they are taken. Everything
/// is called on the scoring thread.
struct RewardRound {
  std::function<std::vector<RewardItem>()> take; ///< items that arrived
  std::function<void(std::size_t item, RewardScore)> on_score; ///< once each
  std::function<void(std::string unmatched)> on_unmatched;
  const net::WakeEvent* more = nullptr;    ///< rung when items arrive, or null
  const std::atomic<bool>* stop = nullptr; ///< give up at once; may be null
};

class Rewarder {
public:
  virtual ~Rewarder() = default;
  /// Returns once every item has its score and no more arrive. Throws
  /// FailureError: bad_input for programs and servers that never worked,
  /// aborted when `round.stop` was set.
  virtual void score(const RewardRound& round) = 0;
};

} // namespace troupe::models
