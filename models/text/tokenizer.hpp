// Converts text to token ids and back, from a Hugging Face tokenizer.json:
// byte-level BPE (GPT-2, Llama 3, Qwen2), SentencePiece-like BPE with byte
// fallback, Unigram (T5, XLM-R), WordPiece (BERT) and WordLevel; or from a
// SentencePiece tokenizer.model. Unsupported
// components of a file are refused by name; nothing is approximated. A
// Tokenizer is a cheap value whose copies share their data, and all its
// functions may be called from any thread.
#pragma once

#include "config/model/model_shape.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

namespace tokenizer {
struct Parts;
}

class Tokenizer {
public:
  /// Loads `tokenizer.json` of a folder, or else `tokenizer.model` (and its
  /// `added_tokens.json`), and, if they exist, `tokenizer_config.json`,
  /// `special_tokens_map.json`, `chat_template.jinja`, the `vocab_size` of
  /// `config.json` and the model's end tokens. Throws ConfigError naming file
  /// and JSON path.
  static Tokenizer load(const std::filesystem::path& folder);
  /// Loads the same; for a folder without those files, returns a tokenizer
  /// without texts that only knows the model's number of ids: rows of ids need
  /// no more.
  static Tokenizer load_if_any(const std::filesystem::path& folder);
  /// Parses the same from text; `config_json` may be empty. `file` is for
  /// messages.
  static Tokenizer parse(std::string_view tokenizer_json,
                         std::string_view config_json, const std::string& file);

  /// Returns the ids of a text; invalid UTF-8 counts as U+FFFD. With `special`
  /// the post-processor's tokens (begin of text, ...) are added. Throws
  /// ConfigError without a vocabulary.
  std::vector<std::int32_t> encode(std::string_view text,
                                   bool special = true) const;
  /// Returns the text of ids; ids outside the vocabulary are left out,
  /// incomplete characters become U+FFFD.
  std::string decode(std::span<const std::int32_t> ids,
                     bool skip_special = true) const;

  bool has_vocabulary() const;
  /// Throws ConfigError that names the missing files if there is no vocabulary.
  void need_vocabulary() const;
  /// Returns the largest id + 1.
  std::int32_t vocab_size() const;
  /// Returns the end of the ids that rows may contain: the vocabulary size of
  /// the model in the folder, which often exceeds the number of tokens, and
  /// which the model may generate.
  std::int32_t num_ids() const;
  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// Returns nullptr for ids outside the vocabulary.
  const std::string* token_of(std::int32_t id) const;
  bool is_special(std::int32_t id) const;
  /// Returns true if a response may end with the id: the tokenizer's end token
  /// or another special one, or an end token of the model in the folder.
  bool ends_response(std::int32_t id) const;
  std::int32_t bos_id() const; ///< -1: none; so for the next three
  std::int32_t eos_id() const;
  std::int32_t pad_id() const;
  std::int32_t unk_id() const;
  /// Returns the Jinja source, if any.
  const std::optional<std::string>& chat_template() const;
  const std::string& file() const; ///< for messages, like the next
  const std::string& chat_template_file() const;

  /// Throws ConfigError unless every id is below the model's vocabulary size.
  void check_fits(const ModelShape& shape, const std::string& model) const;

private:
  explicit Tokenizer(std::shared_ptr<const tokenizer::Parts> parts);
  std::shared_ptr<const tokenizer::Parts> parts_;
};

/// Text of a growing sequence for streaming: a character is returned once all
/// its bytes are there.
class TextStream {
public:
  explicit TextStream(Tokenizer tokenizer, bool skip_special = true);
  /// Returns the text that the next id completes; often empty.
  std::string push(std::int32_t id);
  /// Returns the rest, with U+FFFD for incomplete characters.
  std::string finish();

private:
  std::string rest();

  Tokenizer tokenizer_;
  bool skip_special_;
  std::vector<std::int32_t> ids_; ///< a window: context, then pending ids
  std::size_t shown_ = 0;         ///< ids of the window already returned
};

} // namespace troupe::models
