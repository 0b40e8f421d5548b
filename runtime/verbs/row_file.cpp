#include "runtime/verbs/row_file.hpp"

#include "config/error.hpp"
#include "models/chat_template.hpp"
#include "runtime/jsonl_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <functional>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

/// One row while it is read: knows where it stands, for errors.
class RowReader {
public:
  RowReader(const std::string& file, int line, const std::string& text,
            const models::Tokenizer& tokenizer)
    : place_{file, line},
      tokenizer_(tokenizer),
      row_(Json::parse(text, nullptr, false)) {
    if (row_.is_discarded())
      throw ConfigError(place_, "expected a JSON object, got broken JSON");
    if (!row_.is_object())
      throw ConfigError(place_, "expected a JSON object");
  }

  bool has(const char* field) const {
    return row_.contains(field);
  }
  bool is_text(const char* field) const {
    return has(field) && row_[field].is_string();
  }

  std::vector<std::int32_t> ids(const char* field) const {
    std::vector<std::int32_t> ids;
    if (!row_[field].is_array())
      wrong(field, "a list of token ids");
    for (const auto& id : row_[field]) {
      if (!id.is_number_integer() || id.get<std::int64_t>() < 0
          || id.get<std::int64_t>() >= tokenizer_.vocab_size())
        wrong(field,
              fmt::format("token ids below {}", tokenizer_.vocab_size()));
      ids.push_back(id.get<std::int32_t>());
    }
    return ids;
  }

  /// Tokens of a text; `special` adds what a sequence begins with.
  std::vector<std::int32_t> text(const char* field, bool special) const {
    if (!is_text(field))
      wrong(field, "a text");
    return tokenizer_.encode(row_[field].get<std::string>(), special);
  }

  std::vector<std::int32_t> messages(const char* field) const {
    const auto& list = row_[field];
    if (!list.is_array() || list.empty())
      wrong(field, "a list of messages");
    std::vector<models::Message> messages;
    for (const auto& entry : list) {
      if (!entry.is_object() || !entry.contains("role")
          || !entry.contains("content") || !entry["role"].is_string()
          || !entry["content"].is_string())
        wrong(field, "messages with role and content");
      messages.push_back({entry["role"].get<std::string>(),
                          entry["content"].get<std::string>()});
    }
    return models::encode_chat(tokenizer_, messages, true);
  }

  [[noreturn]] void wrong(const std::string& field,
                          const std::string& expected) const {
    const auto found = row_.find(field);
    throw ConfigError(
      {.place = place_,
       .path = field,
       .expected = expected,
       .got = found == row_.end() ? "nothing" : found->dump().substr(0, 60),
       .hint = ""});
  }

private:
  Place place_;
  const models::Tokenizer& tokenizer_;
  Json row_;
};

std::vector<std::int32_t> prompt_ids(const RowReader& row) {
  if (row.has("prompt_ids"))
    return row.ids("prompt_ids");
  if (row.is_text("prompt"))
    return row.text("prompt", true);
  if (row.has("prompt"))
    return row.messages("prompt");
  if (row.has("messages"))
    return row.messages("messages");
  row.wrong("prompt", "prompt, prompt_ids or messages");
}

std::vector<std::int32_t> sequence_ids(const RowReader& row) {
  if (row.has("ids"))
    return row.ids("ids");
  if (row.has("text"))
    return row.text("text", true);
  if (!row.has("prompt"))
    row.wrong("ids", "ids, text, or prompt and response");
  auto ids
    = row.is_text("prompt") ? row.text("prompt", true) : row.messages("prompt");
  const auto response = row.text("response", false);
  ids.insert(ids.end(), response.begin(), response.end());
  return ids;
}

void refuse_parquet(const std::filesystem::path& file,
                    const std::string& text) {
  if (text.starts_with("PAR1"))
    throw ConfigError(
      {file.string(), 0},
      fmt::format("a parquet file; convert it: python3 -c \"import pandas; "
                  "pandas.read_parquet('{}').to_json('rows.jsonl', "
                  "orient='records', lines=True)\"",
                  file.string()));
}

using RowIds = std::vector<std::int32_t> (*)(const RowReader&);

std::vector<RowTokens> read_rows(const std::filesystem::path& file,
                                 const models::Tokenizer& tokenizer,
                                 const char* field, RowIds ids_of) {
  const auto text = read_file(file);
  refuse_parquet(file, text);
  std::vector<RowTokens> rows;
  int line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    auto end = text.find('\n', begin);
    if (end == std::string::npos)
      end = text.size();
    RowTokens row{++line, text.substr(begin, end - begin), {}};
    begin = end + 1;
    if (row.json.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    const RowReader reader(file.string(), line, row.json, tokenizer);
    row.ids = ids_of(reader);
    if (row.ids.empty())
      reader.wrong(field, "at least one token");
    rows.push_back(std::move(row));
  }
  if (rows.empty())
    throw ConfigError({file.string(), 0}, "expected rows, got none");
  return rows;
}

} // namespace

std::vector<RowTokens> read_prompts(const std::filesystem::path& file,
                                    const models::Tokenizer& tokenizer) {
  return read_rows(file, tokenizer, "prompt", prompt_ids);
}

std::vector<RowTokens> read_sequences(const std::filesystem::path& file,
                                      const models::Tokenizer& tokenizer) {
  return read_rows(file, tokenizer, "ids", sequence_ids);
}

} // namespace troupe::runtime
