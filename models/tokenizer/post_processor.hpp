// Special tokens around a sequence: TemplateProcessing of tokenizer.json.
#pragma once

#include "models/internal/json_at.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models::tokenizer {

class PostProcessor {
public:
  PostProcessor() = default;
  /// Reads `post_processor` (null: none); ConfigError naming path and
  /// component. ByteLevel changes offsets only and is accepted.
  explicit PostProcessor(const internal::JsonAt& json);

  /// The ids with what stands before and after them.
  std::vector<std::int32_t> apply(std::vector<std::int32_t> ids) const;

private:
  void read(const internal::JsonAt& json);
  void read_template(const internal::JsonAt& json);

  std::vector<std::int32_t> before_;
  std::vector<std::int32_t> after_;
};

} // namespace troupe::models::tokenizer
