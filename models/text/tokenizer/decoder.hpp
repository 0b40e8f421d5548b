// Converts tokens back to text: the decoder chain of tokenizer.json.
#pragma once

#include "models/io/json_at.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe::models::tokenizer {

class Decoder {
public:
  Decoder() = default;
  /// Reads `decoder` (null: tokens joined by spaces). Throws ConfigError naming
  /// path and component.
  explicit Decoder(const internal::JsonAt& json);

  /// Returns the text; invalid UTF-8 becomes U+FFFD, as in Hugging Face's
  /// library.
  std::string apply(std::vector<std::string> tokens) const;

private:
  using Step
    = std::function<std::vector<std::string>(std::vector<std::string>)>;
  void read(const internal::JsonAt& json);
  bool read_simple(const internal::JsonAt& json, const std::string& type);

  std::vector<Step> steps_;
  bool joined_by_space_ = true; ///< there is no decoder
};

} // namespace troupe::models::tokenizer
