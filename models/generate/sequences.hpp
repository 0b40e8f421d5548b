// The samples of one generation in progress: made from rows of prompts, turned
// into rows of finished sequences.
#pragma once

#include "config/base/error.hpp"
#include "config/base/ids.hpp"
#include "config/model/model_shape.hpp"
#include "models/generate/generate_options.hpp"
#include "models/generate/response_batch.hpp"
#include "models/generate/turns.hpp"
#include "models/text/stop_texts.hpp"
#include "net/base/rows.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::models::internal {

/// Throws a FailureError of "generation".
[[noreturn]] void generation_failed(Errc code, const std::string& what);

/// Numbers that are recorded of each token.
struct TokenRecord {
  std::vector<float> logprobs;
  std::vector<std::int32_t> kept_counts; ///< for masked log-probabilities
  std::vector<std::int32_t> kept_ids;    ///< of all tokens, one after the other
  /// [L, W] experts that tokens went to, k per layer with experts; -1: not
  /// recorded. Empty until one is.
  std::vector<std::int32_t> experts_LW;
};

/// Most tokens of a sequence.
struct TokenLimits {
  std::int64_t all = 0;  ///< over all turns
  std::int64_t turn = 0; ///< at the end of this turn
};

/// Names the noise of a sample's tokens.
struct NoiseName {
  StepId step;
  std::uint32_t draw = 0; ///< of the turn, see Turn
};

/// One sample in progress.
struct Sequence {
  SampleId sample;
  NoiseName noise;
  std::vector<std::int32_t> ids; ///< prompt, then response
  TokenRecord record;            ///< as long as ids
  std::int64_t num_prompt = 0;
  std::int64_t given = 0; ///< tokens before this turn
  TokenLimits limits;
  std::int64_t fed = 0; ///< tokens in the cache
  std::int32_t slot = -1;
  bool stopped = false; ///< by an end token or a stop text
  /// Index of the first of the adjacent sequences with the same prompt; of a
  /// sequence whose turn began with anything, a number of its own.
  std::size_t group = 0;
  std::optional<StopTexts::Watch> watch; ///< if there are stop texts

  std::int64_t size() const {
    return static_cast<std::int64_t>(ids.size());
  }
  bool finished() const {
    return stopped || size() >= limits.turn;
  }
};

/// Returns one sequence per row, batch by batch, with the responses so far.
/// Throws FailureError{bad_input} for a prompt that the model cannot take, or a
/// response that does not begin with it.
std::vector<Sequence> make_sequences(std::span<const ResponseBatch> batches,
                                     const ModelShape& shape,
                                     const GenerateOptions& options);

/// Begins the next turn of `s`. Those of its tokens in the cache stay fed.
/// Throws FailureError{bad_input} for ids that do not begin with its prompt,
/// unless they may, or are outside the vocabulary.
void begin_turn(Sequence& s, Turn turn, std::int64_t vocab_size);
TurnEnd turn_end(const Sequence& s);

/// Records `count` tokens that were given.
void record_given(Sequence& s, std::size_t count);

/// Returns sequence_ids, loss_mask, logprobs, truncated; for masked
/// log-probabilities also kept_counts i32[L], 0 at tokens that were not drawn,
/// and kept_ids i32 [their sum]; with recorded experts also routed_experts i32
/// [L, W], or [0] of a sample without responses.
net::Rows sequence_rows(std::span<const Sequence> sequences,
                        const GenerateOptions& options);

} // namespace troupe::models::internal
