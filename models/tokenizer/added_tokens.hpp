// Tokens that stand outside the model: found in the text before anything else,
// kept whole, and some of them special (left out when decoding for people).
#pragma once

#include "models/internal/json_at.hpp"
#include "models/tokenizer/normalizer.hpp"
#include "models/tokenizer/vocabulary.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models::tokenizer {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool special = false;
  bool normalized = false;  ///< looked for in the normalised text
  bool single_word = false; ///< only where no word character adjoins
  bool lstrip = false;      ///< swallows the white space before it
  bool rstrip = false;      ///< swallows the white space after it
};

/// Ids end at the largest one + 1.
inline constexpr std::int64_t largest_added_id = INT32_MAX - 1;

/// Files name a token by its text or by an object with `content`.
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
  /// Reads the list `added_tokens`; ConfigError naming the path.
  AddedTokens(const internal::JsonAt& list, const Normalizer& normalizer);

  /// Cuts `text` at the tokens that are looked for before (`normalized` false)
  /// or after normalisation. Sections are not empty and cover the text.
  std::vector<Section> split(std::string_view text, bool normalized) const;
  bool any(bool normalized) const {
    return !finders_[normalized ? 1 : 0].words.empty();
  }
  const std::map<std::int32_t, AddedToken>& tokens() const {
    return tokens_;
  }
  /// nullptr if `id` is not one of them.
  const AddedToken* find(std::int32_t id) const;
  /// -1 if none has this content.
  std::int32_t id(std::string_view content) const;

private:
  struct Finder {
    std::vector<std::pair<std::string, std::int32_t>> words; ///< longest first
    std::array<bool, 256> first_bytes{};
    void add(const std::string& word, std::int32_t id);
  };

  std::map<std::int32_t, AddedToken> tokens_;
  TextMap<std::int32_t> ids_;
  std::array<Finder, 2> finders_; ///< [0] raw text, [1] normalised text
};

} // namespace troupe::models::tokenizer
