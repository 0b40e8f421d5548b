// Token text <-> id, read from the `vocab` object of a model.
#pragma once

#include "models/internal/json_at.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::models::tokenizer {

/// Lets an unordered_map be asked with a string_view.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};

template <class Value>
using TextMap
  = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

class Vocabulary {
public:
  Vocabulary() = default;
  /// ConfigError for ids that are no ids, stand twice, or leave huge gaps.
  explicit Vocabulary(const internal::JsonAt& vocab);
  Vocabulary(Vocabulary&&) = default; // no copies: tokens_ points into ids_
  Vocabulary& operator=(Vocabulary&&) = default;

  /// -1 if there is no such token.
  std::int32_t id(std::string_view token) const;
  /// nullptr if there is no such id.
  const std::string* token(std::int32_t id) const;
  /// Largest id + 1.
  std::int32_t end_id() const {
    return static_cast<std::int32_t>(tokens_.size());
  }
  const TextMap<std::int32_t>& ids() const {
    return ids_;
  }

private:
  TextMap<std::int32_t> ids_;
  std::vector<const std::string*> tokens_; ///< by id, into the keys of ids_
};

} // namespace troupe::models::tokenizer
