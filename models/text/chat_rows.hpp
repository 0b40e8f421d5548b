// Converts messages of a row to token ids: through the tokenizer's chat
// template, with a mask of the assistant's tokens.
#pragma once

#include "models/text/chat_template.hpp"
#include "models/text/tokenizer.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::models::internal {

/// A conversation whose last turn ends with the tokenizer's end token.
struct ChatTokens {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> loss_mask; ///< 1: assistant's token
  std::vector<std::size_t> changed;    ///< assistant messages without loss
};

/// Converter that may be used from any thread.
class ChatRows {
public:
  /// Takes a tokenizer; a missing or broken template is reported on first use.
  explicit ChatRows(Tokenizer tokenizer);
  bool has_template() const {
    return template_.has_value();
  }

  /// Returns the text that the assistant continues. Throws ConfigError.
  std::string prompt_text(const nlohmann::ordered_json& messages) const;
  std::vector<std::int32_t>
  prompt_ids(const nlohmann::ordered_json& messages) const;
  /// Returns a conversation; text that the template writes after the last end
  /// token is cut, and an end token is appended if there is none. Throws
  /// ConfigError.
  ChatTokens conversation(const nlohmann::ordered_json& messages) const;

private:
  const ChatTemplate& chat() const;
  std::size_t tokens_before(const std::string& text, std::size_t end,
                            const std::vector<std::int32_t>& ids) const;

  Tokenizer tokenizer_;
  std::optional<ChatTemplate> template_;
  std::string why_none_;
};

/// Returns [{"role": role, "content": text}].
nlohmann::ordered_json one_message(const char* role, const std::string& text);

} // namespace troupe::models::internal
