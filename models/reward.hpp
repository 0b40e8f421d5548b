// Rewards without a reward model: what a rule, a program or a server is asked
// about an answer, and what it says. Who answers is a Rewarder.
#pragma once

#include "config/error.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
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

/// An answer to score, with its row of the data set.
struct RewardItem {
  std::string id;    ///< "step 3 sample 17", unique in the run
  std::string asker; ///< "rewards of step 3": who asks for its score
  std::string prompt;
  std::string response;
  std::string ground_truth;
  std::string data_source;
  std::string extra_info;       ///< JSON; "" where the row has none
  std::uint32_t num_tokens = 0; ///< of the response
  Place place;                  ///< of the row

  /// Whether the other deserves the same score.
  bool is_like(const RewardItem& other) const {
    const auto content = [](const RewardItem& item) {
      return std::tie(item.prompt, item.response, item.ground_truth,
                      item.data_source, item.extra_info, item.num_tokens);
    };
    return content(*this) == content(other);
  }
};

struct RewardScore {
  /// Scores by name: the rules', or "score" and what `extra` held.
  std::vector<std::pair<std::string, double>> parts;
  std::string trouble; ///< why there is none; empty: all is well
  bool late = false;   ///< the trouble is that it took too long
};

struct RewardAnswers {
  std::vector<RewardScore> scores; ///< one an item, in order
  std::vector<std::string> strays; ///< what was said about nothing asked
};

/// Items to score, those that are there and those that come meanwhile, and who
/// hears of their scores. Items are numbered in the order in which they are
/// taken. All is called on the thread that scores.
struct RewardRound {
  std::function<std::vector<RewardItem>()> take; ///< those that came since
  std::function<void(std::size_t item, RewardScore)> on_score; ///< once each
  std::function<void(std::string stray)> on_stray;
  const net::WakeEvent* more = nullptr;    ///< rung when some came, or null
  const std::atomic<bool>* stop = nullptr; ///< give up at once; may be null
};

class Rewarder {
public:
  virtual ~Rewarder() = default;
  /// Returns once every item has its score and no more came. Throws
  /// FailureError: bad_input for programs and servers that never worked,
  /// aborted when `round.stop` was raised.
  virtual void score(const RewardRound& round) = 0;
};

} // namespace troupe::models
