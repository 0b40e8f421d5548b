// Adds special tokens around a sequence: TemplateProcessing, BertProcessing and
// RobertaProcessing of tokenizer.json.
#pragma once

#include "models/io/json_at.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models::tokenizer {

class PostProcessor {
public:
  PostProcessor() = default;
  /// Reads `post_processor` (null: none). Throws ConfigError naming path and
  /// component. ByteLevel changes only offsets and is accepted.
  explicit PostProcessor(const internal::JsonAt& json);

  /// Returns the ids with the special tokens before and after them.
  std::vector<std::int32_t> apply(std::vector<std::int32_t> ids) const;

private:
  void read(const internal::JsonAt& json);
  void read_template(const internal::JsonAt& json);
  void read_ends(const internal::JsonAt& json);

  std::vector<std::int32_t> before_;
  std::vector<std::int32_t> after_;
};

} // namespace troupe::models::tokenizer
