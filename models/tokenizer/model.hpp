// The middle of a tokenizer: a piece of text to token ids. BPE applies its
// merges in order of rank; WordLevel looks the whole piece up. With
// `byte_level` the vocabulary is read as bytes once, so that text needs no
// rewriting.
#pragma once

#include "models/internal/json_at.hpp"
#include "models/tokenizer/vocabulary.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::models::tokenizer {

class Model {
public:
  virtual ~Model() = default;
  /// Appends the ids of one non-empty piece. Thread-safe.
  virtual void encode(std::string_view piece,
                      std::vector<std::int32_t>& ids) const = 0;
  const Vocabulary& vocabulary() const {
    return vocabulary_;
  }

protected:
  explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  Vocabulary vocabulary_;
};

/// Reads the `model` object; ConfigError naming the path, also for model types
/// that Troupe does not know.
std::unique_ptr<Model> read_model(const internal::JsonAt& model,
                                  bool byte_level);

/// Defined in bpe.cpp.
std::unique_ptr<Model> read_bpe(const internal::JsonAt& model, bool byte_level);

} // namespace troupe::models::tokenizer
