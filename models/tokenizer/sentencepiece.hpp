// SentencePiece models (`tokenizer.model`) through libsentencepiece, for
// folders without a tokenizer.json: pieces come from the library, special
// tokens, prefixes and decoding from the same parts as for other tokenizers,
// set up the way Hugging Face converts such models.
#pragma once

#include "models/tokenizer/model.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <memory>

namespace troupe::models::tokenizer {

struct SentencePieceParts {
  std::unique_ptr<Model> model;
  /// What a tokenizer.json would say of added_tokens, post_processor and
  /// decoder.
  std::unique_ptr<nlohmann::json> document;
};

/// Reads `tokenizer.model` and, where they exist, the tokens that
/// `tokenizer_config.json` adds (`added_tokens_decoder`), else those of
/// `added_tokens.json`. ConfigError for a file that is no SentencePiece model
/// or no such list.
SentencePieceParts read_sentencepiece(const std::filesystem::path& folder);

} // namespace troupe::models::tokenizer
