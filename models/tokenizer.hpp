// Text to token ids and back, from a Hugging Face tokenizer.json: byte-level
// BPE (GPT-2, Llama 3, Qwen2), SentencePiece-like BPE with byte fallback, and
// WordLevel; or from a SentencePiece tokenizer.model. What a file asks for and
// Troupe lacks is refused by name; nothing is approximated. A Tokenizer is a
// cheap value, shared by its copies, and all its functions may be called from
// any thread.
#pragma once

#include "config/model_shape.hpp"

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
  /// Reads `tokenizer.json` of a folder, or `tokenizer.model` (and its
  /// `added_tokens.json`) where there is none, and, where they exist,
  /// `tokenizer_config.json`, `special_tokens_map.json`,
  /// `chat_template.jinja`, the `vocab_size` of `config.json` and the model's
  /// end tokens. ConfigError naming file and JSON path.
  static Tokenizer load(const std::filesystem::path& folder);
  /// The same, or of a folder without those files one that knows no texts but
  /// how many ids the model has: rows of ids need no more.
  static Tokenizer load_if_any(const std::filesystem::path& folder);
  /// The same from text; `config_json` may be empty. `file` is for messages.
  static Tokenizer parse(std::string_view tokenizer_json,
                         std::string_view config_json, const std::string& file);

  /// Bytes that are not UTF-8 count as U+FFFD. With `special` the
  /// post-processor's tokens (begin of text, ...) are added. ConfigError
  /// without a vocabulary.
  std::vector<std::int32_t> encode(std::string_view text,
                                   bool special = true) const;
  /// Ids outside the vocabulary are left out; incomplete characters become
  /// U+FFFD.
  std::string decode(std::span<const std::int32_t> ids,
                     bool skip_special = true) const;

  bool has_vocabulary() const;
  /// ConfigError that names the missing files unless there is one.
  void need_vocabulary() const;
  /// Largest id + 1.
  std::int32_t vocab_size() const;
  /// End of the ids that rows may hold: those of the model in the folder, which
  /// often has more than there are tokens, and makes them too.
  std::int32_t num_ids() const;
  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// nullptr for ids outside the vocabulary.
  const std::string* token_of(std::int32_t id) const;
  bool is_special(std::int32_t id) const;
  /// Whether an answer may end with it: its own end token or another special
  /// one, or an end token of the model in the folder.
  bool ends_answer(std::int32_t id) const;
  std::int32_t bos_id() const; ///< -1: none, as for the next three
  std::int32_t eos_id() const;
  std::int32_t pad_id() const;
  std::int32_t unk_id() const;
  /// The Jinja source, or nothing.
  const std::optional<std::string>& chat_template() const;
  const std::string& file() const; ///< for messages, as the next
  const std::string& chat_template_file() const;

  /// ConfigError unless every id is below the model's vocabulary size.
  void check_fits(const ModelShape& shape, const std::string& model) const;

private:
  explicit Tokenizer(std::shared_ptr<const tokenizer::Parts> parts);
  std::shared_ptr<const tokenizer::Parts> parts_;
};

/// Text of a growing sequence, safe to show while it grows: a character is
/// given out when all its bytes are there.
class TextStream {
public:
  explicit TextStream(Tokenizer tokenizer, bool skip_special = true);
  /// Text that the next id completes; often empty.
  std::string push(std::int32_t id);
  /// What is left, with U+FFFD for incomplete characters.
  std::string finish();

private:
  std::string rest();

  Tokenizer tokenizer_;
  bool skip_special_;
  std::vector<std::int32_t> ids_; ///< a window: context, then not yet shown
  std::size_t shown_ = 0;         ///< ids of the window that were given out
};

} // namespace troupe::models
