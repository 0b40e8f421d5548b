// Normalizes text before it is split: Unicode normal forms, replacements,
// prefixes.
#pragma once

#include "models/io/json_at.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe::models::tokenizer {

class Normalizer {
public:
  Normalizer() = default;
  /// Reads `normalizer` (null: none). Throws ConfigError naming the path and
  /// the unsupported component.
  explicit Normalizer(const internal::JsonAt& json);

  /// Returns the normalized text; `text` and the result are valid UTF-8.
  std::string apply(std::string text) const;
  bool empty() const {
    return steps_.empty();
  }

private:
  void read(const internal::JsonAt& json);
  void read_bert(const internal::JsonAt& json);

  std::vector<std::function<std::string(std::string)>> steps_;
};

/// Returns `text` with every match replaced by `with`.
class Regex;
std::string replace_all(const Regex& regex, const std::string& text,
                        const std::string& with);

} // namespace troupe::models::tokenizer
