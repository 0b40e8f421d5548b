// The samples of one generation on their way: from rows of prompts, and to rows
// of finished sequences.
#pragma once

#include "config/error.hpp"
#include "config/ids.hpp"
#include "config/model_shape.hpp"
#include "models/generate_options.hpp"
#include "models/stop_texts.hpp"
#include "net/rows.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::models::internal {

/// Throws FailureError of "generation".
[[noreturn]] void generation_failed(Errc code, const std::string& what);

/// One sample on its way.
struct Sequence {
  SampleId sample;
  std::vector<std::int32_t> ids; ///< prompt, then answer
  std::vector<float> logprobs;   ///< as long as ids
  std::int64_t num_prompt = 0;
  std::int64_t limit = 0; ///< most tokens in all
  std::int64_t fed = 0;   ///< tokens in the cache
  std::int32_t slot = -1;
  bool stopped = false; ///< by an end token or a stop text
  /// Index of the first of the neighbours with the same prompt.
  std::size_t group = 0;
  std::optional<StopTexts::Watch> watch; ///< where there are stop texts

  std::int64_t size() const {
    return static_cast<std::int64_t>(ids.size());
  }
  bool finished() const {
    return stopped || size() >= limit;
  }
};

/// One a row. Throws FailureError{bad_input} for a prompt that the model cannot
/// take.
std::vector<Sequence> make_sequences(const net::Rows& prompts,
                                     const ModelShape& shape,
                                     const GenerateOptions& options);

/// sequence_ids, loss_mask, logprobs, truncated.
net::Rows sequence_rows(const std::vector<Sequence>& sequences);

} // namespace troupe::models::internal
