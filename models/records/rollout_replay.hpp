// Replays recorded responses instead of generating: reads samples.jsonl and
// returns the rows that a generate call would have produced, for comparing
// plans on equal samples (I1 a).
#pragma once

#include "config/base/ids.hpp"
#include "net/base/rows.hpp"

#include "troupe/key.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace troupe::models {

class RolloutReplay {
public:
  /// Reads the whole file, calling `on_line` with the number of each line;
  /// `keys` are those that samples have in addition to the four of every
  /// response. Throws ConfigError with file, line and field.
  RolloutReplay(const std::filesystem::path& file, std::vector<KeyInfo> keys,
                const std::function<void(int)>& on_line = {});

  /// Returns sequence_ids, loss_mask, logprobs, truncated and `keys` of
  /// `samples`. Throws ConfigError naming the step and sample that the file
  /// lacks.
  net::Rows rows(StepId step, std::span<const SampleId> samples) const;
  /// Returns the number of recorded samples of a step.
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
