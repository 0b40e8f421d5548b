#include "models/text/chat_rows.hpp"

#include "config/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace troupe::models::internal {

using nlohmann::ordered_json;

ChatRows::ChatRows(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {
  try {
    template_.emplace(tokenizer_);
  } catch (const ConfigError& error) {
    why_none_ = error.what();
  }
}

const ChatTemplate& ChatRows::chat() const {
  if (!template_)
    throw ConfigError(Place{}, why_none_);
  return *template_;
}

std::string ChatRows::prompt_text(const ordered_json& messages) const {
  return chat().render(messages, true);
}

std::vector<std::int32_t>
ChatRows::prompt_ids(const ordered_json& messages) const {
  return tokenizer_.encode(prompt_text(messages), false);
}

/// Returns the number of tokens before byte `end`: those that the text up to
/// there also has on its own. (A token across the boundary counts as after it.)
std::size_t
ChatRows::tokens_before(const std::string& text, std::size_t end,
                        const std::vector<std::int32_t>& ids) const {
  if (end >= text.size())
    return ids.size();
  const auto head = tokenizer_.encode(text.substr(0, end), false);
  const auto [at, unused]
    = std::mismatch(ids.begin(), ids.end(), head.begin(), head.end());
  return static_cast<std::size_t>(at - ids.begin());
}

ChatTokens ChatRows::conversation(const ordered_json& messages) const {
  const ChatText chat_text = chat().render_turns(messages);
  ChatTokens row;
  row.ids = tokenizer_.encode(chat_text.text, false);
  row.loss_mask.assign(row.ids.size(), 0);
  row.changed = chat_text.changed;
  for (const auto& [begin, end] : chat_text.assistant) {
    const std::size_t first = tokens_before(chat_text.text, begin, row.ids);
    const std::size_t last = tokens_before(chat_text.text, end, row.ids);
    for (std::size_t i = first; i < last; ++i)
      row.loss_mask[i] = 1;
  }
  const auto spoken
    = std::find(row.loss_mask.rbegin(), row.loss_mask.rend(), 1);
  if (spoken == row.loss_mask.rend())
    return row;
  // end of the last turn: its end token, or an appended one
  const auto size = static_cast<std::size_t>(row.loss_mask.rend() - spoken);
  std::size_t begin = size;
  while (begin > 0 && row.loss_mask[begin - 1] == 1)
    --begin;
  std::size_t end = size;
  while (end > begin && row.ids[end - 1] != tokenizer_.eos_id())
    --end;
  const bool ended = end > begin;
  row.ids.resize(ended ? end : size);
  row.loss_mask.resize(row.ids.size());
  if (!ended) {
    row.ids.push_back(tokenizer_.eos_id());
    row.loss_mask.push_back(1);
  }
  return row;
}

ordered_json one_message(const char* role, const std::string& text) {
  return ordered_json::array({{{"role", role}, {"content", text}}});
}

} // namespace troupe::models::internal
