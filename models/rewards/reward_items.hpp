// Converts finished responses to items to score: the text of each with its row
// of the data set, found by the step's order of rows.
#pragma once

#include "config/base/ids.hpp"
#include "models/rewards/reward.hpp"
#include "net/base/rows.hpp"

namespace troupe::models {

class Dataset;
class Tokenizer;

/// Origin of the responses of a step.
struct ResponseSource {
  const Dataset& data;
  const Tokenizer& tokenizer;
  std::vector<std::string> files; ///< of the data set, for messages
  std::string requester;          ///< call and step, see RewardItem
  StepId step;
  std::vector<std::uint32_t> rows; ///< rows of data, in the step's order
  std::uint32_t samples_per_row = 1;
};

/// Returns one item per sample. Reads sequence_ids, loss_mask and, if there,
/// agent_rewards; sample i belongs to row i / samples_per_row of the step.
std::vector<RewardItem> reward_items(const ResponseSource& source,
                                     const net::Rows& rows);

} // namespace troupe::models
