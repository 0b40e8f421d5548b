// Finished answers as items to score: the text of each with its row of the data
// set, found by the step's order of rows.
#pragma once

#include "config/ids.hpp"
#include "models/reward.hpp"
#include "net/rows.hpp"

namespace troupe::models {

class Dataset;
class Tokenizer;

/// What the answers of a step belong to.
struct AnswerSource {
  const Dataset& data;
  const Tokenizer& tokenizer;
  std::string file;  ///< of the data set, for messages
  std::string asker; ///< call and step, see RewardItem
  StepId step;
  std::vector<std::uint32_t> rows; ///< of the data set, in the step's order
  std::uint32_t samples_per_row = 1;
};

/// One item a sample. Reads sequence_ids and loss_mask; sample i belongs to row
/// i / samples_per_row of the step.
std::vector<RewardItem> reward_items(const AnswerSource& source,
                                     const net::Rows& rows);

} // namespace troupe::models
