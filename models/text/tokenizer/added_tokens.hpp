// Tokens outside the model: found in the text before anything else, kept whole,
// and some of them special (left out when decoding for display).
#pragma once

#include "models/io/json_at.hpp"
#include "models/text/tokenizer/normalizer.hpp"
#include "models/text/tokenizer/vocabulary.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models::tokenizer {

struct AddedToken {
  std::string content;
  std::string decoded; ///< normalised where it is looked for normalised
  std::int32_t id = 0;
  bool special = false;
  bool normalized = false;  ///< searched in normalized text
  bool single_word = false; ///< only without adjacent word characters
  bool lstrip = false;      ///< includes the white space before it
  bool rstrip = false;      ///< includes the white space after it
};

/// Largest id; the end of ids is one larger.
inline constexpr std::int64_t largest_added_id = INT32_MAX - 1;

/// Returns a token's text; files name it by its text or by an object with
/// `content`.
std::string token_text(const internal::JsonAt& token);

/// A part of the text: an added token, or (id -1) text for the model.
struct Section {
  std::int32_t id = -1;
  std::size_t begin = 0;
  std::size_t end = 0;
};

class AddedTokens {
public:
  AddedTokens() = default;
  /// Reads the list `added_tokens`. Throws ConfigError naming the path.
  AddedTokens(const internal::JsonAt& list, const Normalizer& normalizer);

  /// Splits `text` at the tokens that are searched before (`normalized` false)
  /// or after normalization. Sections are non-empty and cover the text.
  std::vector<Section> split(std::string_view text, bool normalized) const;
  bool any(bool normalized) const {
    return !finders_[normalized ? 1 : 0].words.empty();
  }
  const std::map<std::int32_t, AddedToken>& tokens() const {
    return tokens_;
  }
  /// Returns nullptr if `id` is not an added token.
  const AddedToken* find(std::int32_t id) const;
  /// Returns -1 if no token has this content.
  std::int32_t id(std::string_view content) const;

private:
  struct Finder {
    std::vector<std::pair<std::string, std::int32_t>> words; ///< longest first
    std::array<bool, 256> first_bytes{};
    void add(const std::string& word, std::int32_t id);
  };

  std::map<std::int32_t, AddedToken> tokens_;
  TextMap<std::int32_t> ids_;
  std::array<Finder, 2> finders_; ///< [0] raw text, [1] normalized text
};

} // namespace troupe::models::tokenizer
