// Maps token texts to ids and back, read from the `vocab` object of a model.
#pragma once

#include "models/io/json_at.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::models::tokenizer {

/// Enables look-ups in an unordered_map with a string_view.
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
  /// Reads the vocabulary. Throws ConfigError for invalid or repeated ids, or
  /// huge gaps.
  explicit Vocabulary(const internal::JsonAt& vocab);
  /// Takes tokens whose places are their ids; of equal ones the last is found.
  explicit Vocabulary(const std::vector<std::string>& tokens);
  Vocabulary(Vocabulary&&) = default; // not copyable: tokens_ points into ids_
  Vocabulary& operator=(Vocabulary&&) = default;

  /// Returns -1 if there is no such token.
  std::int32_t id(std::string_view token) const;
  /// Returns nullptr if there is no such id.
  const std::string* token(std::int32_t id) const;
  /// Returns the largest id + 1.
  std::int32_t end_id() const {
    return static_cast<std::int32_t>(tokens_.size());
  }
  const TextMap<std::int32_t>& ids() const {
    return ids_;
  }

private:
  TextMap<std::int32_t> ids_;
  std::vector<const std::string*> tokens_; ///< by id; point to the keys of ids_
};

} // namespace troupe::models::tokenizer
