// SentencePiece's table of replacements as tokenizer.json stores it (the
// normalizer `Precompiled` of T5, XLM-R and Marian): a double-array trie from
// UTF-8 to offsets in a block of replacements, each ended by a zero byte.
#pragma once

#include "models/io/json_at.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models::tokenizer {

class Precompiled {
public:
  /// Reads `precompiled_charsmap` in base64. Throws ConfigError where it is not
  /// such a table.
  explicit Precompiled(const internal::JsonAt& charsmap);

  /// Replaces graphemes of up to five bytes, or else single characters, as
  /// Hugging Face's tokenizers do: by the replacement of the shortest entry of
  /// the table that they begin with.
  std::string apply(std::string_view text) const;

private:
  /// Returns the replacement of the shortest entry that `chunk` begins with.
  std::optional<std::string_view> replacement(std::string_view chunk) const;
  void append(std::string_view grapheme, std::string& out) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

} // namespace troupe::models::tokenizer
