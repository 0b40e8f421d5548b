// A tokenizer's chat template: messages to the text that the model was trained
// on. The Jinja subset of published templates runs in `models/jinja/`; what it
// lacks is refused with file and line.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::models {

class Tokenizer;

/// Bytes [begin, end) of a text.
using TextSpan = std::pair<std::size_t, std::size_t>;

struct ChatText {
  std::string text;
  /// What the assistant says, the tokens that end its turns included.
  std::vector<TextSpan> assistant;
  /// Messages of the assistant that are not among these: once others follow,
  /// the template writes them (or what stands before them) in another way, as
  /// templates of thinking models do.
  std::vector<std::size_t> changed;
};

class ChatTemplate {
public:
  /// The tokenizer's own. Throws ConfigError: there is none, or FILE: line N:
  /// what is wrong or not supported.
  explicit ChatTemplate(const Tokenizer& tokenizer);
  /// From source; `special` are variables like {"bos_token", "<s>"}, `file` is
  /// for messages.
  ChatTemplate(const std::string& source,
               std::vector<std::pair<std::string, std::string>> special,
               std::string file);

  /// `messages` is a list of {role, content, ..}; `add_generation_prompt` opens
  /// the assistant's turn. Throws ConfigError where the template refuses the
  /// messages or does not know what to do.
  std::string render(const nlohmann::ordered_json& messages,
                     bool add_generation_prompt) const;
  /// A whole conversation, with the assistant's part: the template's
  /// {% generation %} blocks, or, without any, what each assistant message adds
  /// to the text of the messages before it. ConfigError where the text before
  /// the last turn is not the beginning of the text with it.
  ChatText render_turns(const nlohmann::ordered_json& messages) const;

  const std::string& file() const; ///< for messages

private:
  struct State;
  std::shared_ptr<const State> state_;
};

} // namespace troupe::models
