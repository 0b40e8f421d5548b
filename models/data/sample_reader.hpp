// Reads one JSONL row as the token ids of one sample.
#pragma once

#include "models/data/dataset.hpp"
#include "models/data/row_fields.hpp"
#include "models/text/chat_rows.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace troupe::models::internal {

struct SampleTokens {
  std::vector<std::int32_t> ids;      ///< prompt, sequence, or chosen
  std::vector<std::int32_t> rejected; ///< preference
  std::size_t prompt_tokens = 0;      ///< in `ids`: without loss
  /// Conversations: 1 on the assistant's tokens; empty: all after the prompt.
  std::vector<std::uint8_t> loss_mask;
  float margin = 0;       ///< preference: by which chosen is to be ahead
  bool desirable = false; ///< labelled
  std::uint64_t unlearned_turns = 0; ///< assistant turns after the prompt
  bool overlong = false;             ///< longer than allowed
  bool truncated = false;            ///< overlong, and cut

  std::vector<std::uint8_t> mask() const; ///< as long as ids
  /// Returns 1 after the prompt.
  std::vector<std::uint8_t> rejected_mask() const;
};

/// Converts rows to tokens; a value that may be used from any thread.
class SampleReader {
public:
  /// Throws ConfigError if the options require what the tokenizer lacks.
  SampleReader(const DatasetOptions& options, Tokenizer tokenizer);

  /// Returns the tokens of a row. Throws ConfigError FILE:LINE: field: ... for
  /// a bad row.
  SampleTokens tokens(std::string_view line, const Place& place) const;
  RowText text(std::string_view line, const Place& place) const;
  std::optional<std::string> field(std::string_view line, const Place& place,
                                   const std::string& name) const;

private:
  SampleTokens read(const RowFields& fields) const;
  SampleTokens read_prompt(const RowFields& fields) const;
  SampleTokens read_sft(const RowFields& fields) const;
  SampleTokens read_pair(const RowFields& fields) const;
  SampleTokens read_labelled(const RowFields& fields) const;
  SampleTokens read_score(const RowFields& fields) const;
  bool is_chat(const RowFields& fields, const char* field) const;
  nlohmann::ordered_json messages(const RowFields& fields, const char* field,
                                  const char* role) const;
  SampleTokens read_conversation(const RowFields& fields) const;
  SampleTokens read_chat_pair(const RowFields& fields) const;
  std::string prompt_text(const RowFields& fields) const;
  SampleTokens read_response(const RowFields& fields) const;
  std::vector<std::int32_t> begin_ids(const std::string& text) const;
  void append(std::vector<std::int32_t>& ids, const std::string& text,
              bool end) const;
  void limit(SampleTokens& row) const;

  DatasetOptions options_;
  FieldMapping mapping_;
  Tokenizer tokenizer_;
  ChatRows chat_;
};

} // namespace troupe::models::internal
