// Rows of the verbs generate and score: JSONL in, JSONL out. A row keeps its
// text, so that what comes out is the row as it came in plus new fields.
#pragma once

#include "models/tokenizer.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::runtime {

/// A row and the tokens that it stands for.
struct RowTokens {
  int line = 0;     ///< in the file, from 1
  std::string json; ///< the row, one object
  std::vector<std::int32_t> ids;
};

/// Rows with `prompt_ids`, `prompt` (a text, or messages) or `messages`. Every
/// mistake is a ConfigError with file, line and field.
std::vector<RowTokens> read_prompts(const std::filesystem::path& file,
                                    const models::Tokenizer& tokenizer);

/// Rows with `ids`, `text`, or `prompt` and `response`.
std::vector<RowTokens> read_sequences(const std::filesystem::path& file,
                                      const models::Tokenizer& tokenizer);

} // namespace troupe::runtime
