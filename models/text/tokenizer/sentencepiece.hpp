// SentencePiece models (`tokenizer.model`) through libsentencepiece, for
// folders without a tokenizer.json: the library produces the pieces; special
// tokens, prefixes and decoding use the same components as other tokenizers,
// configured the way Hugging Face converts such models.
#pragma once

#include "models/text/tokenizer/model.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <memory>

namespace troupe::models::tokenizer {

struct SentencePieceParts {
  std::unique_ptr<Model> model;
  /// Equivalent of added_tokens, post_processor and decoder in a
  /// tokenizer.json.
  std::unique_ptr<nlohmann::json> document;
};

/// Reads `tokenizer.model` and, if they exist, the tokens that
/// `tokenizer_config.json` adds (`added_tokens_decoder`), else those of
/// `added_tokens.json`. Throws ConfigError for an invalid SentencePiece model
/// or list.
SentencePieceParts read_sentencepiece(const std::filesystem::path& folder);

} // namespace troupe::models::tokenizer
