// The samples of one generation on their way: from rows of prompts, and to rows
// of finished sequences.
#pragma once

#include "config/error.hpp"
#include "config/ids.hpp"
#include "config/model_shape.hpp"
#include "models/generate_options.hpp"
#include "models/stop_texts.hpp"
#include "models/turns.hpp"
#include "net/rows.hpp"

#include <cstdint>
#include <optional>
#include <span>
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
  std::int64_t given = 0; ///< tokens before this turn
  std::int64_t most = 0;  ///< tokens in all turns together
  std::int64_t limit = 0; ///< tokens at the end of this turn, at most
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

/// One a row, batch after batch. Throws FailureError{bad_input} for a prompt
/// that the model cannot take.
std::vector<Sequence> make_sequences(std::span<const net::Rows> batches,
                                     const ModelShape& shape,
                                     const GenerateOptions& options);

/// The next turn of `s`, whose tokens are `ids` now. What it has in the cache
/// of them stays fed. Throws FailureError{bad_input} for ids that do not begin
/// with its prompt or are not of the vocabulary.
void begin_turn(Sequence& s, std::vector<std::int32_t> ids,
                std::int64_t max_new_tokens, std::int64_t vocab_size);
TurnEnd turn_end(const Sequence& s);

/// sequence_ids, loss_mask, logprobs, truncated.
net::Rows sequence_rows(std::span<const Sequence> sequences);

} // namespace troupe::models::internal
