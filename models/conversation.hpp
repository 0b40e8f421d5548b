// A sample as a conversation: its tokens so far, who said which (loss_mask),
// and what was appended to it but not read by the model yet. Pure functions
// over Samples, around the turns of models/turns.hpp.
#pragma once

#include "models/tokenizer.hpp"
#include "models/turns.hpp"

#include "troupe/sample.hpp"

namespace troupe::models {

/// Begins with the prompt: sequence_ids, loss_mask, logprobs and truncated.
/// `most_tokens` bounds the whole sequence.
void begin_conversation(Sample& sample, std::span<const std::int32_t> prompt,
                        std::int64_t most_tokens);
/// What was appended becomes tokens with loss_mask 0. Of a text that does not
/// fit the beginning is taken, and the sample is truncated.
void take_appended(Sample& sample, const Tokenizer& tokenizer);
/// The turn that continues it as it is now.
Turn next_turn(const Sample& sample, std::uint32_t max_tokens);
/// The model's tokens, their text (turn), and the text of all turns (response).
void take_turn(Sample& sample, const TurnEnd& turn, const Tokenizer& tokenizer);

} // namespace troupe::models
