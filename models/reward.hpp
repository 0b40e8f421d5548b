// Rewards without a reward model: what a rule, a program or a server is asked
// about an answer, and what it says. Who answers is a Rewarder.
#pragma once

#include "config/error.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {
struct Settings;
} // namespace troupe

namespace troupe::models {

/// An answer to score, with its row of the data set.
struct RewardItem {
  std::string id; ///< "step 3 sample 17", unique in the run
  std::string prompt;
  std::string response;
  std::string ground_truth;
  std::string data_source;
  std::string extra_info;       ///< JSON; "" where the row has none
  std::uint32_t num_tokens = 0; ///< of the response
  Place place;                  ///< of the row
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

/// What a Rewarder may look at while it waits.
struct RewardWait {
  const std::atomic<bool>* stop = nullptr; ///< give up at once; may be null
  std::function<void()> progress;          ///< called at each score
};

class Rewarder {
public:
  virtual ~Rewarder() = default;
  /// Throws FailureError: bad_input for programs
  /// and servers that never worked, aborted when `wait.stop` was raised.
  virtual RewardAnswers score(const std::vector<RewardItem>& items,
                              const RewardWait& wait)
    = 0;
};

} // namespace troupe::models
