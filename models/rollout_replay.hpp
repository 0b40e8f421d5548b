// Recorded answers instead of generated ones: reads samples.jsonl and gives the
// rows that a generate call would have made, for comparing plans on equal
// samples (I1 a).
#pragma once

#include "config/ids.hpp"
#include "net/rows.hpp"

#include "troupe/key.hpp"

#include <filesystem>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace troupe::models {

class RolloutReplay {
public:
  /// Reads the whole file; `keys` are those that samples have besides the four
  /// of every answer. Throws ConfigError with file, line and field.
  RolloutReplay(const std::filesystem::path& file, std::vector<KeyInfo> keys);

  /// sequence_ids, loss_mask, logprobs, truncated and `keys` of `samples`.
  /// Throws ConfigError naming the step and sample that the file does not have.
  net::Rows rows(StepId step, std::span<const SampleId> samples) const;
  /// Recorded samples of a step.
  std::size_t num_samples(StepId step) const;

private:
  struct Sample {
    std::vector<std::int32_t> sequence_ids;
    std::vector<std::uint8_t> loss_mask;
    std::vector<float> logprobs; ///< aligned with sequence_ids
    std::uint8_t truncated = 0;
    std::vector<std::string> values; ///< bytes of each of keys_
  };
  net::Column value_column(std::span<const Sample* const> samples,
                           std::size_t key) const;

  std::filesystem::path file_;
  std::vector<KeyInfo> keys_;
  std::map<std::pair<StepId, SampleId>, Sample> samples_;
};

} // namespace troupe::models
