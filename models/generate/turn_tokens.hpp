// A sample as a conversation: its tokens so far, which of them the model
// generated (loss_mask), and the appended text that the model has not read yet.
// Pure functions over Samples, around the turns of models/generate/turns.hpp.
#pragma once

#include "models/generate/turns.hpp"
#include "models/text/tokenizer.hpp"

#include "troupe/sample.hpp"

namespace troupe::models {

/// Begins with the prompt: sets sequence_ids, loss_mask, logprobs and
/// truncated. `most_tokens` bounds the whole sequence.
void begin_conversation(Sample& sample, std::span<const std::int32_t> prompt,
                        std::int64_t most_tokens);
/// Converts appended text to tokens with loss_mask 0. If a text does not fit,
/// its beginning is taken and the sample is truncated.
void take_appended(Sample& sample, const Tokenizer& tokenizer);
/// Returns the turn that continues the sample in its current state.
Turn next_turn(const Sample& sample, std::uint32_t max_tokens,
               std::uint32_t speaker = 0);
/// Adds the tokens of a speaker, their text (turn), and the text of all turns
/// of the first one (response): what others say has loss_mask 0.
void take_turn(Sample& sample, const TurnEnd& turn, const Tokenizer& tokenizer,
               std::uint32_t speaker = 0);

} // namespace troupe::models
