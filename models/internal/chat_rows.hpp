// Messages of a row to token ids: through the tokenizer's chat template, with
// a mask of what the assistant says.
#pragma once

#include "models/chat_template.hpp"
#include "models/tokenizer.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::models::internal {

/// A conversation whose last turn ends with the tokenizer's end token.
struct ChatTokens {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> loss_mask; ///< 1: the assistant's token
  std::vector<std::size_t> changed;    ///< messages of its that have no 1
};

/// A value that may be used from any thread.
class ChatRows {
public:
  /// A template that is missing or broken is an error of the first use.
  explicit ChatRows(Tokenizer tokenizer);
  bool has_template() const {
    return template_.has_value();
  }

  /// The text that the assistant continues. ConfigError.
  std::string prompt_text(const nlohmann::ordered_json& messages) const;
  std::vector<std::int32_t>
  prompt_ids(const nlohmann::ordered_json& messages) const;
  /// What the template writes behind the last end token is cut; where it
  /// writes none, one is added. ConfigError.
  ChatTokens conversation(const nlohmann::ordered_json& messages) const;

private:
  const ChatTemplate& chat() const;
  std::size_t tokens_before(const std::string& text, std::size_t end,
                            const std::vector<std::int32_t>& ids) const;

  Tokenizer tokenizer_;
  std::optional<ChatTemplate> template_;
  std::string why_none_;
};

/// [{"role": role, "content": text}]
nlohmann::ordered_json one_message(const char* role, const std::string& text);

} // namespace troupe::models::internal
