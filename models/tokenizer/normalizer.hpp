// Text before it is cut: Unicode normal forms, replacements, prefixes.
#pragma once

#include "models/internal/json_at.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe::models::tokenizer {

class Normalizer {
public:
  Normalizer() = default;
  /// Reads `normalizer` (null: none); ConfigError naming the path and the
  /// component that is not supported.
  explicit Normalizer(const internal::JsonAt& json);

  /// `text` is valid UTF-8, and so is the result.
  std::string apply(std::string text) const;
  bool empty() const {
    return steps_.empty();
  }

private:
  void read(const internal::JsonAt& json);

  std::vector<std::function<std::string(std::string)>> steps_;
};

/// `text` with every match replaced by `with`.
class Regex;
std::string replace_all(const Regex& regex, const std::string& text,
                        const std::string& with);

} // namespace troupe::models::tokenizer
