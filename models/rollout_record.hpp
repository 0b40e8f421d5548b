// One line of samples.jsonl: what was asked, what was answered, token by token,
// and what it was worth. Numbers are printed so that they read back to the bit:
// `run.replay` feeds recorded answers to another plan (I1).
#pragma once

#include "config/ids.hpp"
#include "net/rows.hpp"

#include "troupe/key.hpp"

#include <filesystem>
#include <span>
#include <string>

namespace troupe::models {

class Tokenizer;

/// Appends `text`, whole or with a FailureError (io).
void append_text(const std::filesystem::path& file, const std::string& text);

/// Writes `text` beside `file`, in a folder that is made where it is missing,
/// then renames it. Throws FailureError (io).
void write_file_whole(const std::filesystem::path& file,
                      const std::string& text);

/// Appends the samples of `rows` (sequence_ids, loss_mask, logprobs, truncated;
/// scores and ref_logprobs where there are any: `kl` is nats a sequence; `keys`
/// is what else was made with the answers or of them) to `file`, in sample
/// order. Steps count from 1 in the file. Throws FailureError (io).
void append_samples(const std::filesystem::path& file, StepId step,
                    const net::Rows& rows, std::span<const KeyInfo> keys,
                    const Tokenizer& tokenizer);

} // namespace troupe::models
