// The model of a tokenizer: converts a piece of text to token ids. BPE applies
// its merges in order of rank, Unigram takes the likeliest tokens, WordPiece
// the longest from the left; WordLevel looks up the whole piece. With
// `byte_level` the vocabulary is converted to bytes once, so that text needs no
// rewriting.
#pragma once

#include "models/io/json_at.hpp"
#include "models/text/tokenizer/vocabulary.hpp"

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

/// Reads the `model` object. Throws ConfigError naming the path, also for
/// unknown model types.
std::unique_ptr<Model> read_model(const internal::JsonAt& model,
                                  bool byte_level);

/// Read models, each in a file of its name.
std::unique_ptr<Model> read_bpe(const internal::JsonAt& model, bool byte_level);
std::unique_ptr<Model> read_unigram(const internal::JsonAt& model);
std::unique_ptr<Model> read_word_piece(const internal::JsonAt& model);

} // namespace troupe::models::tokenizer
