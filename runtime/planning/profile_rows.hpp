// Synthetic samples of a run's lengths for the profiler: random tokens, the
// prompt excluded from the loss, as many samples per prompt as the run draws,
// so that what the run computes once per prompt is computed once here too.
#pragma once

#include "config/settings/settings.hpp"
#include "net/base/rows.hpp"
#include "plans/workflow/workflow.hpp"

#include <cstdint>
#include <string>

namespace troupe::runtime {

struct SampleLengths {
  std::uint32_t prompt = 0;
  std::uint32_t response = 1; ///< or the whole sequence, without a prompt
  std::uint32_t samples_a_prompt = 1;

  std::uint32_t sequence() const {
    return prompt + response;
  }
};

/// Returns prompts of the mean length of the first ones of data.train, and
/// responses up to the run's limit; the limits themselves if there is no such
/// file.
SampleLengths run_lengths(const Settings& settings,
                          const plans::Workflow& workflow);

class ProfileRows {
public:
  ProfileRows(const SampleLengths& lengths, std::int64_t vocab_size)
    : lengths_(lengths),
      vocab_size_(vocab_size) {}

  /// Returns rows with prompt_ids.
  net::Rows prompts(std::uint32_t samples) const;
  /// Returns rows with sequence_ids and loss_mask; for pairs, those of chosen_
  /// and rejected_.
  net::Rows sequences(std::uint32_t samples, bool pairs) const;
  /// Adds a column [L] of numbers to rows of `sequences`.
  void add_floats(net::Rows& rows, const std::string& key) const;

private:
  std::vector<std::int32_t> tokens(std::uint32_t samples, std::uint32_t length,
                                   std::uint32_t seed) const;

  SampleLengths lengths_;
  std::int64_t vocab_size_;
};

} // namespace troupe::runtime
