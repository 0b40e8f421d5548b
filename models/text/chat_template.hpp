// A tokenizer's chat template: converts messages to the text format that the
// model was trained on. The Jinja subset of published templates is implemented
// in `models/text/jinja/`; unsupported constructs are refused with file and
// line.
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
  /// Spans of the assistant's text, including the tokens that end its turns.
  std::vector<TextSpan> assistant;
  /// Assistant messages outside these spans: once others follow, the template
  /// renders them (or the text before them) differently, as templates of
  /// thinking models do.
  std::vector<std::size_t> changed;
};

class ChatTemplate {
public:
  /// Compiles the tokenizer's template. Throws ConfigError: there is none, or
  /// FILE: line N: what is wrong or not supported.
  explicit ChatTemplate(const Tokenizer& tokenizer);
  /// Compiles a template from source; `special` are variables like
  /// {"bos_token", "<s>"}, `file` is for messages.
  ChatTemplate(const std::string& source,
               std::vector<std::pair<std::string, std::string>> special,
               std::string file);

  /// Renders messages: `messages` is a list of {role, content, ...};
  /// `add_generation_prompt` opens the assistant's turn. Throws ConfigError if
  /// the template refuses the messages or cannot handle them.
  std::string render(const nlohmann::ordered_json& messages,
                     bool add_generation_prompt) const;
  /// Renders the same with `tools`, a list of functions that the model may
  /// call; null: none.
  std::string render(const nlohmann::ordered_json& messages,
                     const nlohmann::ordered_json& tools,
                     bool add_generation_prompt) const;
  /// Renders a whole conversation and finds the assistant's part: the
  /// template's {% generation %} blocks or, without any, the text that each
  /// assistant message adds to that of the messages before it. Throws
  /// ConfigError if the text before the last turn is not a prefix of the whole
  /// text.
  ChatText render_turns(const nlohmann::ordered_json& messages) const;

  const std::string& file() const; ///< for messages

private:
  struct State;
  std::shared_ptr<const State> state_;
};

} // namespace troupe::models
